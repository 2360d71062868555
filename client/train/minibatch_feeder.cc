// SPDX-License-Identifier: Apache-2.0
#include "client/train/minibatch_feeder.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <utility>

#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

std::optional<c10::Stream> CopyStream(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  return c10::impl::VirtualGuardImpl(device.type())
      .getStreamFromGlobalPool(device);
}

// Waits for an event or a stream. If that throws, the device is lost and reads
// no memory.
template <typename Awaited>
void WaitFor(const Awaited& awaited) noexcept {
  try {
    awaited.synchronize();
  } catch (const std::exception&) {
  }
}

// Whether the step has a batch whose minibatch has not been made yet.
bool IsToFill(const FedStep& fed) {
  return fed.step.batch.has_value() && !fed.minibatch.has_value();
}

}  // namespace

void WaitForEvent::operator()(c10::Event* event) const noexcept {
  WaitFor(*event);
  delete event;
}

MinibatchFeeder::MinibatchFeeder(std::unique_ptr<Loader> loader,
                                 const Model& model, const Task& task)
    : loader_(std::move(loader)),
      model_(model),
      task_(task),
      copies_(CopyStream(model.device())),
      timer_(model.device()) {}

absl::Status MinibatchFeeder::MakeCopies(FedStep& fed) {
  // This memory belongs to the copy stream, though the compute stream reads it.
  // A step frees it only after the host has waited for the compute stream.
  const c10::OptionalStreamGuard guard(copies_);
  timer_.Start();
  MILLRACE_ASSIGN_OR_RETURN(
      fed.minibatch, MakeMinibatch(*fed.step.batch, model_, task_,
                                   // A device has no part in the work before.
                                   [this] {
                                     if (copies_.has_value()) timer_.Start();
                                   }));
  timer_.Stop();
  if (!copies_.has_value()) return absl::OkStatus();
  fed.arrival.reset(new c10::Event(copies_->device_type()));
  fed.arrival->record(*copies_);
  return absl::OkStatus();
}

absl::Status MinibatchFeeder::Fill(FedStep& fed) {
  absl::Status made =
      CatchTorch("copying a batch", [&] { return MakeCopies(fed); });
  if (made.ok()) return made;
  if (copies_.has_value()) WaitFor(*copies_);
  fed.minibatch.reset();
  fed.arrival.reset();
  return made;
}

MinibatchFeeder::MaybeStep MinibatchFeeder::Fetch() {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<LoaderStep> step, loader_->Next());
  if (!step.has_value()) return std::optional<FedStep>();
  return FedStep{*std::move(step), std::nullopt};
}

MinibatchFeeder::MaybeStep MinibatchFeeder::Next() {
  if (ahead_.empty()) ahead_.push_back(Fetch());
  // Nothing follows an error or the end.
  MaybeStep& front = ahead_.front();
  if (front.ok() && front->has_value() && IsToFill(**front)) {
    const absl::Status filled = Fill(**front);
    if (!filled.ok()) front = filled;
  }
  MILLRACE_RETURN_IF_ERROR(front.status());
  if (!front->has_value()) return std::optional<FedStep>();
  MaybeStep next = std::move(front);
  ahead_.pop_front();
  if ((*next)->arrival == nullptr) return next;
  return CatchTorch("waiting for the copy of a batch", [&] {
    const c10::impl::VirtualGuardImpl guard(copies_->device_type());
    (*next)->arrival->block(guard.getStream(copies_->device()));
    return std::move(next);
  });
}

bool MinibatchFeeder::MayGoOn() const {
  if (ahead_.empty()) return true;
  const MaybeStep& last = ahead_.back();
  return last.ok() && last->has_value() && !IsToFill(**last);
}

void MinibatchFeeder::CopyAhead() {
  if (!copies_.has_value()) return;
  while (ahead_.size() < kAhead && loader_->ready() && MayGoOn()) {
    ahead_.push_back(Fetch());
    MaybeStep& last = ahead_.back();
    if (!last.ok() || !last->has_value() || !IsToFill(**last)) continue;
    const absl::Status filled = Fill(**last);
    if (!filled.ok() && !IsOutOfDeviceMemory(filled)) last = filled;
  }
}

}  // namespace millrace
