// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/loader.h"
#include "client/nn/model.h"
#include "client/train/collectives.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

struct InferenceOptions {
  int64_t chunk = 4096;   // nodes asked for at once
  bool all_ranks = true;  // else rank 0 does all the work
  int prefetch_batches = 4;
  int64_t prefetch_bytes = int64_t{1} << 30;
};

// Exact inference of all nodes, layer by layer over all neighbours: what the
// whole graph at once would give, with the memory of two layers' matrices.
// Each rank computes a contiguous range of original ids and they tell each
// other between layers.
// Threads: one at a time; all ranks run together.
class FullInference {
 public:
  // Keeps references to all but `job`, of which the direction and the seed
  // type count.
  FullInference(std::shared_ptr<BatchSource> source, const JobSpec& job,
                Model& model, Collectives& collectives,
                const InferenceOptions& options);

  // The rows of this rank's range (see begin(), end()) of the result of layer
  // `layers - 1` (1-based count of layers to run; at least 1).
  // RESOURCE_EXHAUSTED: the matrices would not fit in memory (names the
  // numbers and --inference sampled). Errors of Loader and Collectives.
  absl::StatusOr<at::Tensor> Run(int layers);
  // The same of all nodes, [n, width], on every rank.
  absl::StatusOr<at::Tensor> RunForAll(int layers);

  // This rank's original ids.
  int64_t begin() const { return BoundOf(collectives_.rank()); }
  int64_t end() const { return BoundOf(collectives_.rank() + 1); }

 private:
  struct Chunk;
  int64_t BoundOf(int rank) const;
  absl::Status CheckMemory(int layers) const;
  absl::StatusOr<std::unique_ptr<Loader>> Load(const Columns& columns) const;
  // One layer over this rank's range: [end() - begin(), width].
  absl::StatusOr<at::Tensor> RunLayer(int layer, const at::Tensor& input);
  absl::Status RunChunk(int layer, const at::Tensor& input, const Batch& batch,
                        at::Tensor& output) const;
  // Rows of all ranks from this rank's.
  absl::StatusOr<at::Tensor> Exchange(const at::Tensor& own) const;
  // Degrees without self loops, for GcnNorm::kSampled; by original id.
  absl::Status CountOthers();

  const std::shared_ptr<BatchSource> source_;  // shared with the trainer
  JobSpec job_;
  Model& model_;
  Collectives& collectives_;
  const InferenceOptions options_;
  int64_t nodes_ = 0;
  at::Tensor others_;  // [n] kInt; see CountOthers
};

}  // namespace millrace
