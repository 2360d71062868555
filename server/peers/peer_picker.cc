// SPDX-License-Identifier: Apache-2.0
#include "server/peers/peer_picker.h"

#include <algorithm>
#include <string>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/call/replica_failure.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

constexpr int kMaxFailures = 3;
// How often a wait for a server checks whether the client has gone away.
constexpr absl::Duration kCancelCheckInterval = absl::Milliseconds(200);
// How long to wait for the fleet to refresh what it knows of servers that
// failed or refused.
constexpr absl::Duration kMaxRefreshWait = absl::Seconds(1);

// Whether the server may turn out to have the partition. A server last known to
// serve only other partitions is not expected to.
bool MayHave(const FleetMemberInfo& info, int partition) {
  const std::vector<int>& served = info.partitions;
  return info.state == FleetMemberInfo::State::kUnknown &&
         (served.empty() ||
          std::find(served.begin(), served.end(), partition) != served.end());
}

}  // namespace

absl::StatusOr<std::shared_ptr<FleetMember>> PeerPicker::Pick() {
  Fleet* const fleet = scope_.core.fleet.get();
  if (fleet == nullptr) {
    MILLRACE_RETURN_IF_ERROR(scope_.core.damage.Check(partition_));
    return WithErrorInfo(
        FieldStatus(absl::StatusCode::kFailedPrecondition,
                    {.problem = FieldError::Problem::kMissing,
                     .field = "peers",
                     .limit = StrCat("this server does not have partition ",
                                     partition_, ", and knows no others")}),
        {.partition = partition_});
  }
  if (!failed_.empty()) {
    auto other = fleet->Pick(partition_, SteadyTime::InfinitePast(), failed_);
    if (other.ok()) return other;
    MILLRACE_RETURN_IF_ERROR(AwaitRefresh());
    // Falls back to a server that failed before, but not to one that refused.
    other = refusals_.Pick(*fleet, partition_);
    if (other.ok() || !absl::IsUnavailable(other.status())) return other;
  }
  return Await();
}

// Waits until the server list has been read again since a server refused, and
// until failed servers have been asked again what they serve. Only then is it
// known whether there is any server left to wait for.
absl::Status PeerPicker::AwaitRefresh() {
  Fleet& fleet = *scope_.core.fleet;
  const auto all_known = [this](const std::vector<FleetMemberInfo>& members) {
    return std::none_of(
        members.begin(), members.end(),
        [this](const auto& member) { return MayHave(member, partition_); });
  };
  const SteadyTime refused = refusals_.Start(partition_);
  const SteadyTime end =
      std::min(scope_.deadline, SteadyNow() + kMaxRefreshWait);
  bool known = false;
  while (!known && SteadyNow() < end) {
    MILLRACE_RETURN_IF_ERROR(CheckNotCancelled(scope_.call));
    const SteadyTime soon = std::min(end, SteadyNow() + kCancelCheckInterval);
    if (!fleet.AwaitList(refused, soon)) continue;
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<FleetMemberInfo> members,
                              fleet.AwaitMembers(all_known, soon));
    known = all_known(members);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<FleetMember>> PeerPicker::Await() {
  const SteadyTime end =
      std::min(scope_.deadline, SteadyNow() + scope_.core.options.peer_wait);
  while (true) {
    auto member = scope_.core.fleet->Pick(
        partition_, std::min(end, SteadyNow() + kCancelCheckInterval));
    if (member.ok()) return member;
    if (const absl::Status live = scope_.CheckNotCancelled(); !live.ok()) {
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
                                const absl::Status& status) {
  // Calls that this server cancels or abandons are not reported, so only the
  // client can have cancelled this one; if it has not, the other server is
  // stopping.
  if (status.ok() || (absl::IsCancelled(status) && scope_.call.IsCancelled())) {
    return status;
  }
  const ReplicaFailure failure = AssessFailure(status);
  scope_.core.fleet->ReportFailure(member,
                                   failure.refused ? status : failure.status);
  if (failure.refused) refusals_.Add(partition_, member, status);
  return failure.status;
}

void PeerPicker::NoteSuccess() {
  failures_ = 0;
  failed_.clear();
}

bool PeerPicker::MaySendAgain(const FleetMember& member,
                              const absl::Status& failure) {
  const bool failed_before =
      std::find(failed_.begin(), failed_.end(), &member) != failed_.end();
  failed_.push_back(&member);
  // A replica's first refusal does not count, so that each replica is asked
  // once.
  if (failed_before || !refusals_.Include(partition_, member)) ++failures_;
  if (!IsRetryable(failure) || failures_ >= kMaxFailures ||
      scope_.call.IsCancelled()) {
    return false;
  }
  // The client should wait until the overload passes, unless another replica is
  // free.
  return !absl::IsResourceExhausted(failure) ||
         scope_.core.fleet
             ->Pick(partition_, SteadyTime::InfinitePast(), failed_)
             .ok();
}

}  // namespace millrace
