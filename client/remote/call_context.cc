// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_context.h"

#include <string>

#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/grpc/channel_args.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// What gRPC, not a server, refuses for want of room.
absl::Status TooLarge(const FleetMember& member, const absl::Status& status) {
  return absl::ResourceExhaustedError(
      StrCat("server ", member.address, ": ", std::string(status.message()),
             "; a message may have at most ", kMaxMessageBytes,
             " bytes\nuse a smaller batch size or fanouts"));
}

// A duration rounded for messages.
std::string Rounded(absl::Duration time) {
  return absl::FormatDuration(absl::Trunc(time, time < absl::Seconds(1)
                                                    ? absl::Milliseconds(1)
                                                    : absl::Milliseconds(100)));
}

}  // namespace

absl::Status ProtocolError(const FleetMember& member,
                           const absl::Status& status) {
  return absl::InternalError(StrCat(
      "server ", member.address, " breaks the protocol: ",
      std::string(status.message()), "\nrun the same version everywhere"));
}

CallTimes TimesOf(const CallContext& context, int partition) {
  const SteadyTime now = SteadyNow();
  return {now + context.retry.TimeoutOf(context.timeout, now),
          context.retry.PatienceOf(partition, now)};
}

absl::Status NoteFailure(const CallContext& context, const FleetMember& member,
                         int partition, SteadyTime start,
                         const absl::Status& status) {
  if (status.ok()) return status;
  ErrorInfo info = ErrorInfoOf(status);
  const bool of_another =
      info.partition.has_value() && *info.partition != partition;
  const bool refused = IsServedElsewhere(status);
  if (!of_another || refused) context.fleet.ReportFailure(member, status);
  if (refused) {
    context.refusals.Add(partition, member, status);
    return WithErrorInfo(
        absl::UnavailableError(StrCat("server ", member.address, ": ",
                                      std::string(status.message()))),
        {.partition = partition});
  }
  info.partition = info.partition.value_or(partition);
  if (absl::IsDeadlineExceeded(status)) {
    const SteadyTime now = SteadyNow();
    context.retry.NoteSilence(*info.partition, start);
    return WithErrorInfo(
        absl::UnavailableError(of_another
                                   ? std::string(status.message())
                                   : StrCat("no answer from ", member.address,
                                            " within ", Rounded(now - start))),
        info);
  }
  if (absl::IsCancelled(status)) {
    // This client did not cancel the call, or else the status does not matter,
    // since calls that were given up are not reported. So the server is
    // stopping.
    return WithErrorInfo(
        absl::UnavailableError(
            StrCat(member.address, " ended a call before it was done")),
        info);
  }
  // This client may know of a sound replica that the home does not know of yet.
  if (of_another && absl::IsDataLoss(status) &&
      context.fleet.Pick(*info.partition, SteadyTime::InfinitePast()).ok()) {
    context.retry.NoteWait(*info.partition, start);
    return WithErrorInfo(absl::UnavailableError(std::string(status.message())),
                         info);
  }
  if (of_another && absl::IsUnavailable(status)) {
    context.retry.NoteWait(*info.partition, start);
  }
  if (IsRetryable(status)) return WithErrorInfo(status, info);
  if (absl::IsResourceExhausted(status)) return TooLarge(member, status);
  return status;
}

}  // namespace millrace
