// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/group/collectives.h"
#include "client/train/task/minibatch.h"

namespace millrace {

class Objective;

// What one step saw, over all ranks.
struct StepSums {
  double loss = 0;       // summed over labelled values
  int64_t labelled = 0;  // labelled values: one a seed, or one a column; of
                         // edges see LinkOutcome
  int64_t correct = 0;   // of them; see CountCorrect
};

// Gradients of one step over all ranks: every rank sums its losses, one
// all-reduce adds gradients, losses and counts, and the sum is divided once
// by the number of labelled values of all ranks.
// Threads: one at a time; all ranks step together.
class TrainStep {
 public:
  // Keeps references to all.
  TrainStep(Model& model, Collectives& collectives, const Objective& objective);

  // `minibatch` null, or without a label: this rank runs no forward
  // pass and joins with zeros. Errors of Collectives; INTERNAL from LibTorch.
  absl::StatusOr<StepSums> Run(const Minibatch* minibatch,
                               const DropoutKey& dropout);

  // The mean gradient of the last step, all parameters flattened in their
  // order; valid until the next Run(). Zeros when no rank had a labelled
  // seed.
  const at::Tensor& gradient() const { return gradient_; }

  // Averages the model's running statistics over ranks, weighted by the
  // seeds that each trained on since the last call. All ranks call it.
  absl::Status AverageBuffers();

  // What AverageBuffers() would make of the buffers, in their order; they stay
  // as they are. Empty: it would change none. All ranks call it.
  absl::StatusOr<std::vector<at::Tensor>> MeanBuffers();
  // What ranks need beside that to go on as if nothing had been averaged: by
  // name, the buffers that differ between ranks, and kRankSeeds; a row a rank
  // each. Empty where no rank has trained since the last average. All ranks
  // call it.
  absl::StatusOr<std::vector<NamedTensor>> RankBuffers();
  // Takes this rank's rows. INVALID_ARGUMENT: another model's or world's.
  absl::Status LoadRankBuffers(const std::vector<NamedTensor>& ranks);
  static constexpr char kRankSeeds[] = "seeds since the last average";

 private:
  absl::Status CheckBatchMemory(const Minibatch& minibatch);
  absl::Status ForwardBackward(const Minibatch& minibatch,
                               const DropoutKey& dropout);

  Model& model_;
  Collectives& collectives_;
  const Objective& objective_;
  uint64_t checked_bytes_ = 0;  // the largest LayerBytes() that was checked
  int64_t seeds_since_average_ = 0;
  at::Tensor exchange_;  // gradients, then loss, labelled, correct
  at::Tensor gradient_;  // view of exchange_
};

}  // namespace millrace
