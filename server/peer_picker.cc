// SPDX-License-Identifier: Apache-2.0
#include "server/peer_picker.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/status.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

constexpr int kMaxFailures = 3;
// How long a wait for a server goes on for a client that has gone.
constexpr absl::Duration kLookInterval = absl::Milliseconds(200);

}  // namespace

absl::StatusOr<std::shared_ptr<FleetMember>> PeerPicker::Pick() {
  Fleet* const fleet = scope_.core.fleet.get();
  if (fleet == nullptr) {
    MILLRACE_RETURN_IF_ERROR(scope_.core.damage.Check(partition_));
    return WithErrorInfo(
        absl::FailedPreconditionError(
            StrCat("partition ", partition_,
                   ": this server knows no other servers\nstart it with "
                   "--peers LIST")),
        {.partition = partition_});
  }
  if (!failed_.empty()) {
    auto other = fleet->Pick(partition_, SteadyTime::InfinitePast(), failed_);
    if (other.ok()) return other;
    // Then one that has failed before, but not one that has refused.
    other = refusals_.Pick(*fleet, partition_);
    if (other.ok() || !absl::IsUnavailable(other.status())) return other;
  }
  return Await();
}

absl::StatusOr<std::shared_ptr<FleetMember>> PeerPicker::Await() {
  const SteadyTime end =
      std::min(scope_.deadline, SteadyNow() + scope_.core.options.peer_wait);
  while (true) {
    auto member = scope_.core.fleet->Pick(
        partition_, std::min(end, SteadyNow() + kLookInterval));
    if (member.ok()) return member;
    if (const absl::Status live = scope_.CheckLive(); !live.ok()) {
      return WithErrorInfo(
          absl::Status(live.code(),
                       StrCat(std::string(live.message()), ": ",
                              std::string(member.status().message()))),
          {.partition = partition_});
    }
    if (SteadyNow() >= end) return member;
  }
}

absl::Status PeerPicker::Report(const FleetMember& member,
                                absl::Status status) {
  if (absl::IsCancelled(status) && !scope_.call.IsCancelled()) {
    // Not by us: of calls that were given up we are not told. A server that
    // stops.
    status = absl::UnavailableError("the call was ended before it was done");
  }
  if (!status.ok()) scope_.core.fleet->ReportFailure(member, status);
  if (IsServedElsewhere(status)) {
    refusals_.Add(partition_, member, status);
    return absl::UnavailableError(std::string(status.message()));
  }
  return status;
}

void PeerPicker::NoteSpeaker(std::shared_ptr<FleetMember> member) {
  speaker_ = std::move(member);
}

void PeerPicker::NoteSuccess() {
  failures_ = 0;
  failed_.clear();
}

absl::Status PeerPicker::AfterFailure(const absl::Status& failure) {
  failed_.push_back(speaker_.get());
  if (!IsRetryable(failure) || ++failures_ >= kMaxFailures ||
      scope_.call.IsCancelled()) {
    return Named(failure);
  }
  // Overload is for the client to wait out, unless another replica is free.
  if (absl::IsResourceExhausted(failure) &&
      !scope_.core.fleet->Pick(partition_, SteadyTime::InfinitePast(), failed_)
           .ok()) {
    return Named(failure);
  }
  return absl::OkStatus();
}

absl::Status PeerPicker::Named(const absl::Status& status) const {
  ErrorInfo info = ErrorInfoOf(status);
  info.partition = partition_;
  info.moved = false;  // we do not look further
  return WithErrorInfo(
      absl::Status(status.code(), StrCat("partition ", partition_, ", server ",
                                         speaker_->address, ": ",
                                         std::string(status.message()))),
      info);
}

}  // namespace millrace
