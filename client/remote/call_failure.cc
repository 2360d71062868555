// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_failure.h"

#include <string>

#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/grpc/call/replica_failure.h"
#include "common/grpc/channel_args.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

using Kind = CallFailure::Kind;

// The error for a message that gRPC, and not a server, refuses as too large.
absl::Status TooLarge(const FleetMember& member, const absl::Status& status) {
  return absl::ResourceExhaustedError(
      StrCat("server ", member.address, ": ", std::string(status.message()),
             "; a message may have at most ", kMaxMessageBytes,
             " bytes\nuse a smaller batch size or fanouts"));
}

// Rounds a duration for messages.
std::string Rounded(absl::Duration time) {
  return absl::FormatDuration(absl::Trunc(time, time < absl::Seconds(1)
                                                    ? absl::Milliseconds(1)
                                                    : absl::Milliseconds(100)));
}

bool IsKnownElsewhere(Replicas& replicas, int partition) {
  return replicas.Pick(partition, SteadyTime::InfinitePast(), {}).ok();
}

}  // namespace

CallFailure ClassifyFailure(Replicas& replicas, const ReplicaCall& call,
                            const absl::Status& status, SteadyTime now) {
  const FleetMember& member = call.member;
  ErrorInfo info = ErrorInfoOf(status);
  const std::string message(status.message());
  const int partition = info.partition.value_or(call.partition);
  const bool of_another = partition != call.partition;
  info.partition = partition;
  const auto unavailable = [&](Kind kind, const std::string& what) {
    return CallFailure{kind, partition,
                       WithErrorInfo(absl::UnavailableError(what), info)};
  };
  const ReplicaFailure failure = AssessFailure(status);
  const auto named = [&] {
    return StrCat("server ", member.address, ": ",
                  std::string(failure.status.message()));
  };
  if (failure.refused) {
    return {Kind::kRefused, call.partition,
            WithErrorInfo(absl::UnavailableError(named()),
                          {.partition = call.partition})};
  }
  if (absl::IsDeadlineExceeded(status)) {
    return unavailable(Kind::kTimeout,
                       of_another
                           ? message
                           : StrCat("no answer from ", member.address,
                                    " within ", Rounded(now - call.start)));
  }
  if (absl::IsCancelled(status)) {
    // Calls that this client cancels or abandons are not reported, so the
    // server is stopping.
    return unavailable(Kind::kTransient, named());
  }
  // This client may know a working replica that the home does not know yet.
  if (of_another && absl::IsDataLoss(status) &&
      IsKnownElsewhere(replicas, partition)) {
    return unavailable(Kind::kOtherLost, message);
  }
  if (IsRetryable(status)) {
    const bool lost = of_another && absl::IsUnavailable(status);
    return {lost ? Kind::kOtherLost : Kind::kTransient, partition,
            WithErrorInfo(status, info)};
  }
  // Reasons are not sent, so an error with one is this client's own.
  const bool refused_by_grpc =
      absl::IsResourceExhausted(status) && ReasonOf(status).empty();
  return {Kind::kFinal, partition,
          refused_by_grpc ? TooLarge(member, status) : status};
}

absl::Status NoteEnd(const CallContext& context, const ReplicaCall& call,
                     const absl::Status& status) {
  if (status.ok()) return status;
  const CallFailure failure =
      ClassifyFailure(context.fleet, call, status, context.timer.Now());
  // Another partition's failure says nothing about this server.
  if (failure.partition == call.partition) {
    context.fleet.ReportFailure(call.member, status);
  }
  switch (failure.kind) {
    case Kind::kRefused:
      context.refusals.Add(call.partition, call.member, status);
      break;
    case Kind::kTimeout:
      context.retry.NoteSilence(failure.partition, call.start);
      break;
    case Kind::kOtherLost:
      context.retry.NoteWait(failure.partition, call.start);
      break;
    case Kind::kTransient:
    case Kind::kFinal:
      break;
  }
  return failure.status;
}

}  // namespace millrace
