// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/loader.h"
#include "client/nn/model.h"
#include "client/tensor/batch_tensors.h"
#include "client/train/device/accelerator.h"
#include "client/train/device/memory_check.h"
#include "client/train/group/collectives.h"
#include "common/base/host_memory.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

struct InferenceOptions {
  int64_t chunk = 4096;   // nodes per batch
  bool all_ranks = true;  // if false, rank 0 does all the work
  int prefetch_batches = 4;
  int64_t prefetch_bytes = int64_t{1} << 30;
  int ranks_on_host = 1;  // ranks that share the memory of this host
  // Of batches on their way to the model's device; null for the process's.
  std::shared_ptr<ArrayMemory> memory = nullptr;
};

// Exact inference for all nodes of the model's output types, layer by layer
// over all neighbours; gives what a forward pass over the whole graph would.
// Each rank computes a contiguous range of original ids per type. The ranks
// exchange rows between layers, so each holds a layer's input for all nodes,
// but only its own rows of the output. These matrices are on the CPU, whatever
// device computes them.
// Threads: one at a time; all ranks make the same calls.
class FullInference {
 public:
  // Keeps references to `model`, `collectives` and `accelerator`, which the
  // model is on. Uses only the direction of `job`.
  FullInference(std::shared_ptr<BatchSource> source, const JobSpec& job,
                Model& model, Collectives& collectives,
                const InferenceOptions& options,
                const Accelerator& accelerator = CpuAccelerator());

  // Returns the rows of the seeds' type after `layers` layers (0 means the
  // input of the first layer) in this rank's range, [end() - begin(), width]
  // kFloat. Fails like Loader, Collectives and MakeEvaluationCheck().
  absl::StatusOr<at::Tensor> Run(int layers);
  // The same for all nodes, [n, width], on every rank.
  absl::StatusOr<at::Tensor> RunForAll(int layers);
  // The same after all layers, per node type; defined for the output types.
  absl::StatusOr<std::vector<at::Tensor>> RunForAllTypes();

  // Maximum number of bytes of matrices that Run(layers) holds at a time or,
  // with `for_all`, RunForAll() and RunForAllTypes() do.
  MemoryNeed MemoryNeeded(int layers, bool for_all) const;
  // RESOURCE_EXHAUSTED: they do not fit in the memory that is available (names
  // the numbers and --inference sampled).
  absl::Status CheckMemory(int layers, bool for_all) const;

  // The range of this rank's original ids.
  int64_t begin() const { return BoundOf(seed_type(), collectives_.rank()); }
  int64_t end() const { return BoundOf(seed_type(), collectives_.rank() + 1); }

 private:
  using PerType = std::vector<at::Tensor>;

  TypeIndex seed_type() const { return model_.shape().seed_type; }
  int64_t CountOf(TypeIndex type) const;
  // The first original id of a rank's range.
  int64_t BoundOf(TypeIndex type, int rank) const;
  // The bytes of `copies` copies of the rows that `layer` computes (for -1,
  // that layer 0 reads) on the ranks [begin_rank, end_rank).
  uint64_t MatrixBytes(int layer, int begin_rank, int end_rank,
                       int copies) const;
  // Maximum number of bytes that `holders` ranks, each with the rows of all
  // nodes, and `workers` ranks, each with as many rows of its own as this one,
  // hold at a time.
  uint64_t PeakBytes(int layers, bool for_all, int holders, int workers) const;
  // Calls `use` with batches of one hop of `fanout` around this rank's nodes
  // of `type`, and with the first row of each. Rank 0 shows progress of `what`.
  template <typename Use>
  absl::Status ForEachChunk(const std::string& what, TypeIndex type,
                            int32_t fanout, const Columns& columns,
                            Use&& use) const;
  absl::StatusOr<PerType> RunTypes(int layers);
  // What layer 0 reads for this rank's range of `type`.
  absl::StatusOr<at::Tensor> RunInput(TypeIndex type);
  // Runs one layer over this rank's range of `type`. `input` has the rows of
  // all nodes from the previous layer.
  absl::StatusOr<at::Tensor> RunLayer(int layer, TypeIndex type,
                                      const PerType& input);
  absl::Status RunChunk(int layer, TypeIndex type, const PerType& input,
                        const Batch& batch, const at::Tensor& output);
  // Checks that the rows that a layer reads and computes for a chunk fit in the
  // memory of the device.
  absl::Status CheckChunk(int layer, const BatchTensors& tensors);
  // Whether lists point into the matrices of all nodes, which saves a copy of
  // rows. These are on the CPU.
  bool ReadsWholeInput(int layer) const {
    return layer > 0 && !model_.works_on_sources() && model_.device().is_cpu();
  }
  // What `layer` reads for a chunk whose first seed has the original id
  // `first`.
  LayerInput ChunkOf(int layer, TypeIndex type, const PerType& input,
                     int64_t first, const BatchTensors& tensors) const;
  absl::StatusOr<BatchTensors> TensorsOf(const Batch& batch) const;
  Neighbors ListsOf(const NodeTensors& nodes, const EdgeTensors& edges) const;
  // Returns the rows of all ranks; `own` has this rank's.
  absl::StatusOr<at::Tensor> Exchange(TypeIndex type,
                                      const at::Tensor& own) const;
  // Sets others_ to the degrees without self loops, for GcnNorm::kSampled.
  absl::Status CountOthers();

  const std::shared_ptr<BatchSource> source_;  // shared with the trainer
  JobSpec job_;
  Model& model_;
  Collectives& collectives_;
  const InferenceOptions options_;
  MemoryCheck chunks_;
  at::Tensor others_;  // [n] kInt, by original id; see CountOthers
};

}  // namespace millrace
