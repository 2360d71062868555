// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/device/accelerator.h"
#include "client/train/device/memory_check.h"
#include "client/train/device/reducer.h"
#include "client/train/gradient_buckets.h"
#include "client/train/group/collectives.h"
#include "client/train/task/minibatch.h"

namespace millrace {

class Objective;

// Sums of one step over all ranks.
struct StepSums {
  double loss = 0;       // summed over labelled values
  int64_t labelled = 0;  // labelled values: one per seed, or one per column;
                         // for edges see LinkOutcome
  int64_t correct = 0;   // correct ones among them; see CountCorrect
};

// Computes the gradients of steps over all ranks: every rank sums its losses,
// an all-reduce adds gradients, losses and counts, and the sum is divided once
// by the number of labelled values of all ranks.
// Threads: one at a time; all ranks make the same calls.
class TrainStep {
 public:
  // Keeps references to the first four. The model is on `accelerator`, and so
  // is `reducer`; a null one adds up on the CPU.
  TrainStep(Model& model, Collectives& collectives, const Objective& objective,
            Accelerator& accelerator = CpuAccelerator(),
            std::unique_ptr<Reducer> reducer = nullptr);

  // If `minibatch`, which is on the accelerator, is null or has no label, this
  // rank runs no forward pass and adds zeros. RESOURCE_EXHAUSTED: the batch
  // does not fit in memory. Also the errors of Collectives; INTERNAL from
  // LibTorch. Calls `meanwhile` once while the device computes; it may be null.
  absl::StatusOr<StepSums> Run(
      const Minibatch* minibatch, const DropoutKey& dropout,
      const std::function<void()>& meanwhile = nullptr);

  // The mean gradient of the last step, [values of all parameters] kFloat on
  // the model's device, in the order of the parameters; valid until the next
  // Run(). Zeros if no rank had a labelled seed.
  const at::Tensor& gradient() const { return buckets_.gradient(); }

  // Averages the model's running statistics over ranks, weighted by the
  // seeds that each trained on since the last call. All ranks call it.
  absl::Status AverageBuffers();

  // Returns what AverageBuffers() would set the buffers to, in their order,
  // without changing them. Empty if it would change none. All ranks call it.
  absl::StatusOr<std::vector<at::Tensor>> MeanBuffers();
  // Returns what ranks need besides that to resume as if nothing had been
  // averaged: kRankSeeds and the buffers that differ between ranks, with one
  // row per rank. Empty if no rank has trained since the last average. All
  // ranks call it.
  absl::StatusOr<std::vector<NamedTensor>> RankBuffers();
  // Restores this rank's rows. INVALID_ARGUMENT: they are from another model or
  // another number of ranks (names the tensor and both shapes).
  absl::Status LoadRankBuffers(const std::vector<NamedTensor>& ranks);
  static constexpr char kRankSeeds[] = "seeds since the last average";

 private:
  absl::Status CheckBatchMemory(const Minibatch& minibatch);
  absl::Status ForwardBackward(const Minibatch& minibatch,
                               const DropoutKey& dropout);

  Model& model_;
  Collectives& collectives_;
  const Objective& objective_;
  MemoryCheck memory_;
  int64_t seeds_since_average_ = 0;
  const std::unique_ptr<Reducer> reducer_;
  GradientBuckets buckets_;  // behind the gradients: loss, labelled, correct
};

}  // namespace millrace
