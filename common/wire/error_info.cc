// SPDX-License-Identifier: Apache-2.0
#include "common/wire/error_info.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "common/base/strings.h"
#include "sampler.pb.h"

namespace millrace {

absl::Status WithErrorInfo(absl::Status status, const ErrorInfo& info) {
  v1::ErrorInfo proto;
  if (info.partition) {
    proto.set_partition(static_cast<uint32_t>(*info.partition));
  }
  const int64_t milliseconds = absl::ToInt64Milliseconds(info.retry_after);
  proto.set_retry_after_ms(std::max<int64_t>(milliseconds, 0));
  proto.set_moved(info.moved);
  status.SetPayload(AbslView(kErrorInfoUrl),
                    absl::Cord(proto.SerializeAsString()));
  return status;
}

ErrorInfo ErrorInfoOf(const absl::Status& status) {
  ErrorInfo info;
  const auto payload = status.GetPayload(AbslView(kErrorInfoUrl));
  v1::ErrorInfo proto;
  if (!payload || !proto.ParseFromString(std::string(*payload))) return info;
  if (proto.has_partition() && proto.partition() <= INT32_MAX) {
    info.partition = static_cast<int>(proto.partition());
  }
  // Longer times are capped at a day, so that they cannot overflow.
  constexpr uint64_t kDayMs = uint64_t{24} * 3600 * 1000;
  info.retry_after =
      absl::Milliseconds(std::min(proto.retry_after_ms(), kDayMs));
  info.moved = proto.moved();
  return info;
}

bool IsRetryable(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    // Servers never send UNKNOWN; gRPC reports it for a broken stream.
    case absl::StatusCode::kUnknown:
      return true;
    // A busy server says when to ask again. Without such a hint, the error is
    // gRPC's: the message is too large, and a retry cannot help.
    case absl::StatusCode::kResourceExhausted:
      return ErrorInfoOf(status).retry_after > absl::ZeroDuration();
    default:
      return false;
  }
}

bool IsServedElsewhere(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         ((absl::IsFailedPrecondition(status) || absl::IsDataLoss(status)) &&
          ErrorInfoOf(status).moved);
}

}  // namespace millrace
