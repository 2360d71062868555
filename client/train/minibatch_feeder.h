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

// Waits for an event before it deletes it.
struct WaitForEvent {
  void operator()(c10::Event* event) const noexcept;
};

// A step of a loader, with its minibatch on the model's device. Its destructor
// waits for the minibatch's copy, which reads the batch's memory.
struct FedStep {
  LoaderStep step;  // its batch's memory must stay until the step is done
  std::optional<Minibatch> minibatch;  // absent like the step's batch
  // When the minibatch is there; null on the CPU and without a batch. Is
  // destroyed first.
  std::unique_ptr<c10::Event, WaitForEvent> arrival = nullptr;
};

// Gives the steps of a loader in order. For a device, copies their minibatches
// in a stream of its own, up to kAhead steps before they are needed.
// Threads: one at a time.
class MinibatchFeeder {
 public:
  static constexpr size_t kAhead = 2;

  // Keeps a reference to `model`. Throws what LibTorch throws.
  MinibatchFeeder(std::unique_ptr<Loader> loader, const Model& model,
                  const Task& task);

  const Loader& loader() const { return *loader_; }

  // Returns the next step, or nullopt when all epochs are done. Work that the
  // device's current stream gets afterwards waits for the minibatch. Waits for
  // the batch. Fails like Loader::Next and MakeMinibatch; INTERNAL from
  // LibTorch.
  absl::StatusOr<std::optional<FedStep>> Next();
  // Starts the copies of steps whose batches have arrived. Call it while the
  // device computes. An error shows when Next() comes to its step. A copy that
  // does not fit into the device's memory is made again there, where earlier
  // steps take none, and is the last one until then. Does nothing on the CPU.
  void CopyAhead();

  // Time that the host has spent waiting for batches.
  absl::Duration waited() const { return loader_->waited(); }
  // Time that copies to the device have taken or, on the CPU, making
  // minibatches. Waits for copies. Throws what LibTorch throws.
  absl::Duration copied() { return timer_.Total(); }
  // The part of it that is known by now. Does not wait.
  absl::Duration copied_so_far() { return timer_.Passed(); }

 private:
  using MaybeStep = absl::StatusOr<std::optional<FedStep>>;
  MaybeStep Fetch();
  // Whether there may be steps after those in ahead_, and memory for them.
  bool MayGoOn() const;
  // Makes the minibatch of a step that has a batch and no minibatch. Afterwards
  // nothing reads the batch if it fails.
  absl::Status Fill(FedStep& fed);
  absl::Status MakeCopies(FedStep& fed);

  const std::unique_ptr<Loader> loader_;
  const Model& model_;
  const Task task_;
  const std::optional<c10::Stream> copies_;  // absent on the CPU
  WorkTimer timer_;
  std::deque<MaybeStep> ahead_;
};

}  // namespace millrace
