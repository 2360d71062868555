// SPDX-License-Identifier: Apache-2.0
// Details of a service error beyond its code and message.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace millrace {

// The payload of a Status under this URL is a serialized v1.ErrorInfo.
inline constexpr std::string_view kErrorInfoUrl =
    "type.googleapis.com/millrace.v1.ErrorInfo";

struct ErrorInfo {
  std::optional<int> partition;  // the one that failed
  absl::Duration retry_after =
      absl::ZeroDuration();  // zero if there is no hint
  bool moved = false;  // whether another server may have what was asked for
};

// How long to wait before asking a busy server again. It is short, since calls
// end all the time.
inline constexpr absl::Duration kRetryAfter = absl::Milliseconds(50);

// The start of the RESOURCE_EXHAUSTED message of a call that a server ended to
// make room for other clients. gRPC cannot send an ErrorInfo with it, so
// FromGrpcStatus() adds one.
inline constexpr std::string_view kEndedForOthers =
    "the call was ended to make room for other clients";

// `status` must not be OK.
absl::Status WithErrorInfo(absl::Status status, const ErrorInfo& info);
// The ErrorInfo of a status; empty if it has none, or an unreadable one.
ErrorInfo ErrorInfoOf(const absl::Status& status);

// Whether the same call may succeed later or on another replica; see the table
// in docs/protocol.md. All calls are idempotent.
bool IsRetryable(const absl::Status& status);

// Whether another server may accept what this one refused because it has
// another store, other partitions or a damaged file, or does not let us in.
bool IsServedElsewhere(const absl::Status& status);

}  // namespace millrace
