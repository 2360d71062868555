// SPDX-License-Identifier: Apache-2.0
// Arrays and batches as tensors, without a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/sample/batch.h"

namespace millrace {

// A tensor over the memory of `array`, which it keeps alive. Treat it as
// read-only: the memory may be a mapped file or shared with other tensors.
// Unsigned 32-bit arrays become kInt and unsigned 64-bit ones kLong, bit for
// bit; who makes such a tensor knows that the values fit (see BatchTensors).
// INVALID_ARGUMENT: an absent array.
absl::StatusOr<at::Tensor> ViewAsTensor(const Array& array);

// The same; leaves `out` as it is for an absent array.
absl::Status ViewIfPresent(const Array& array, at::Tensor& out);

// The neighbour lists of one relation as CSR over local ids.
struct EdgeTensors {
  at::Tensor indptr;    // [expanded + 1] kInt
  at::Tensor neighbor;  // [e] kInt
  at::Tensor edge_id;   // [e] kLong; undefined unless the batch has them
  at::Tensor feature;   // [e, d]; undefined unless the batch has them
};

// What a model reads of one node type; undefined tensors are absent columns.
struct NodeTensors {
  std::vector<uint32_t> hop_offsets;
  at::Tensor feature;      // [n, d], as stored
  at::Tensor label;        // [seeds] or [seeds, k] (or all rows)
  at::Tensor degree;       // [n] kInt
  at::Tensor original_id;  // [n] kLong
};

// Views of a batch's arrays; they keep the arrays alive, not the batch.
struct BatchTensors {
  std::vector<NodeTensors> nodes;  // per node type
  std::vector<EdgeTensors> edges;  // per relation
  at::Tensor seed_to_local;        // [seeds] kInt
};

// OUT_OF_RANGE: a node type or relation of the batch has 2^31 rows or more
// (local ids would not fit kInt).
absl::StatusOr<BatchTensors> ToTensors(const Batch& batch);

// The ids of the batch's nodes of one type as kLong; copies unless the ids
// are stored as 64 bits.
absl::StatusOr<at::Tensor> NodeIds(const NodeBlock& block);

}  // namespace millrace
