// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/loader.h"
#include "client/nn/model.h"
#include "client/train/device/work_timer.h"
#include "client/train/task/minibatch.h"
#include "client/train/task/task.h"

namespace millrace {

// A step of a loader, with its minibatch on the model's device.
struct FedStep {
  LoaderStep step;  // its batch's memory must stay until the step is done
  std::optional<Minibatch> minibatch;  // absent like the step's batch
  // When the minibatch is there; absent on the CPU.
  std::optional<c10::Event> arrival = std::nullopt;
};

// Gives the steps of a loader in order. For a device, copies their minibatches
// in a stream of its own, up to kAhead steps before they are needed.
// Threads: one at a time.
class MinibatchFeeder {
 public:
  static constexpr size_t kAhead = 2;

  // Keeps a reference to `model`.
  MinibatchFeeder(std::unique_ptr<Loader> loader, const Model& model,
                  const Task& task);

  const Loader& loader() const { return *loader_; }

  // Returns the next step, or nullopt when all epochs are done. Work that the
  // device's current stream gets afterwards waits for the minibatch. Waits for
  // the batch. Fails like Loader::Next and MakeMinibatch.
  absl::StatusOr<std::optional<FedStep>> Next();
  // Starts the copies of steps whose batches have arrived. Call it while the
  // device computes. An error shows when Next() comes to its step. Does nothing
  // on the CPU.
  void CopyAhead();

  // Time that Next() has spent waiting for batches.
  absl::Duration waited() const { return waited_; }
  // Time that making minibatches has taken: copies to the device, or work on
  // the CPU. Waits for copies.
  absl::Duration copied() { return timer_.Total(); }

 private:
  using MaybeStep = absl::StatusOr<std::optional<FedStep>>;
  MaybeStep Fetch();
  // Whether there may be steps after those in ahead_.
  bool MayGoOn() const;
  absl::StatusOr<FedStep> MakeStep(LoaderStep step);

  const std::unique_ptr<Loader> loader_;
  const Model& model_;
  const Task task_;
  const std::optional<c10::Stream> copies_;  // absent on the CPU
  WorkTimer timer_;
  absl::Duration waited_;
  std::deque<MaybeStep> ahead_;
};

}  // namespace millrace
