// SPDX-License-Identifier: Apache-2.0
#include "client/train/minibatch_feeder.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"

namespace millrace {
namespace {

std::optional<c10::Stream> CopyStream(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  return c10::impl::VirtualGuardImpl(device.type())
      .getStreamFromGlobalPool(device);
}

}  // namespace

MinibatchFeeder::MinibatchFeeder(std::unique_ptr<Loader> loader,
                                 const Model& model, const Task& task)
    : loader_(std::move(loader)),
      model_(model),
      task_(task),
      copies_(CopyStream(model.device())),
      timer_(model.device()) {}

absl::StatusOr<FedStep> MinibatchFeeder::MakeStep(LoaderStep step) {
  FedStep fed{std::move(step), std::nullopt};
  if (!fed.step.batch.has_value()) return fed;
  // This memory belongs to the copy stream, though the compute stream reads it.
  // A step frees it only after the host has waited for the compute stream.
  const c10::OptionalStreamGuard guard(copies_);
  timer_.Start();
  MILLRACE_ASSIGN_OR_RETURN(fed.minibatch,
                            MakeMinibatch(*fed.step.batch, model_, task_));
  timer_.Stop();
  if (copies_.has_value()) {
    fed.arrival.emplace(copies_->device_type());
    fed.arrival->record(*copies_);
  }
  return fed;
}

MinibatchFeeder::MaybeStep MinibatchFeeder::Fetch() {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<LoaderStep> step, loader_->Next());
  if (!step.has_value()) return std::optional<FedStep>();
  return CatchTorch("copying a batch", [&]() -> MaybeStep {
    MILLRACE_ASSIGN_OR_RETURN(FedStep fed, MakeStep(*std::move(step)));
    return fed;
  });
}

MinibatchFeeder::MaybeStep MinibatchFeeder::Next() {
  if (ahead_.empty()) {
    const SteadyTime start = SteadyNow();
    const absl::Duration before = loader_->waited();
    ahead_.push_back(Fetch());
    waited_ +=
        copies_.has_value() ? SteadyNow() - start : loader_->waited() - before;
  }
  // Nothing follows an error or the end.
  MILLRACE_RETURN_IF_ERROR(ahead_.front().status());
  if (!ahead_.front()->has_value()) return std::optional<FedStep>();
  MaybeStep next = std::move(ahead_.front());
  ahead_.pop_front();
  if ((*next)->arrival.has_value()) {
    const c10::impl::VirtualGuardImpl guard(copies_->device_type());
    (*next)->arrival->block(guard.getStream(copies_->device()));
  }
  return next;
}

bool MinibatchFeeder::MayGoOn() const {
  return ahead_.empty() || (ahead_.back().ok() && ahead_.back()->has_value());
}

void MinibatchFeeder::CopyAhead() {
  if (!copies_.has_value()) return;
  while (ahead_.size() < kAhead && loader_->ready() && MayGoOn()) {
    ahead_.push_back(Fetch());
  }
}

}  // namespace millrace
