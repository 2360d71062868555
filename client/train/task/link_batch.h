// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"

namespace millrace {

// One number, or one row, for each end of n edge seeds and of m negatives.
// Undefined if there are none.
struct LinkEnds {
  at::Tensor src;           // [n]
  at::Tensor dst;           // [n]
  at::Tensor negative_src;  // [m]
  at::Tensor negative_dst;  // [m]
};

// How the negatives of a batch belong to its seeds.
enum class NegativeShape {
  kNone,
  kPairs,    // negative_src[i] and negative_dst[i] are a pair
  kPerSeed,  // m = n * k: k destinations for each seed, in seed order
  kShared,   // m destinations for every seed
  kInBatch,  // the destinations of the other seeds
};

// The seeds of a batch of edge seeds, as tensors.
struct LinkBatch {
  NegativeShape negatives = NegativeShape::kNone;
  LinkEnds id;           // original ids, kLong
  LinkEnds row;          // rows of the batch's nodes of the ends' types, kInt
  at::Tensor edge_type;  // [n] kLong; undefined if all are 0
  // [n] kFloat; see ReadLabels for TaskKind::kBinary. Undefined unless kNone.
  at::Tensor label;

  int64_t size() const { return id.src.size(0); }
};

// Views the seeds of a batch. `mode` is the job's. Given negatives are
// kPerSeed. The tensors share the batch's memory where they can, and keep it
// alive. Fails like ViewAsTensor and ReadLabels.
absl::StatusOr<LinkBatch> MakeLinkBatch(const Batch& batch, NegativeMode mode);

// Return the same tensors on a device. They do not wait for copies out of
// pinned memory.
LinkBatch SendLinks(const LinkBatch& links, at::Device device);
LinkEnds SendEnds(const LinkEnds& ends, at::Device device);

// Returns the rows of two matrices that `index` names: `source` has those of
// the sources' node type, `destination` those of the destinations'.
LinkEnds TakeEnds(const LinkEnds& index, const at::Tensor& source,
                  const at::Tensor& destination);

}  // namespace millrace
