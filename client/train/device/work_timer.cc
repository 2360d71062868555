// SPDX-License-Identifier: Apache-2.0
#include "client/train/device/work_timer.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace millrace {
namespace {

// Old pieces are added from this number on. They are long done.
constexpr size_t kMaxPieces = 16;

c10::Event RecordEvent(c10::Device device) {
  c10::Event event(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  event.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  return event;
}

}  // namespace

void WorkTimer::Start() {
  if (device_.is_cpu()) {
    start_ = SteadyNow();
    return;
  }
  while (pieces_.size() >= kMaxPieces) AddOldest();
  start_event_ = RecordEvent(device_);
}

void WorkTimer::Stop() {
  if (device_.is_cpu()) {
    total_ += SteadyNow() - start_;
    return;
  }
  pieces_.push_back({*std::move(start_event_), RecordEvent(device_)});
}

void WorkTimer::AddOldest() {
  const Piece& oldest = pieces_.front();
  oldest.stop.synchronize();
  total_ += absl::Milliseconds(oldest.start.elapsedTime(oldest.stop));
  pieces_.pop_front();
}

absl::Duration WorkTimer::Passed() {
  while (!pieces_.empty() && pieces_.front().stop.query()) AddOldest();
  return total_;
}

absl::Duration WorkTimer::Total() {
  while (!pieces_.empty()) AddOldest();
  return total_;
}

}  // namespace millrace
