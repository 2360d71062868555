// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

// HTTP/2 peers refuse trailers of more than 8 KB. They contain the message
// twice, and percent-encoding may triple one of the copies.
constexpr size_t kMaxMessage = 1024;

// gRPC's message for HTTP/2's ENHANCE_YOUR_CALM, with which a server ends calls
// when it is receiving too many requests. Unlike for a message that is too
// large, a retry can help.
constexpr char kCalm[] = "RST_STREAM with error code 11";

// Whether the server ended a call to shed load. gRPC sends no details with
// that, so it is recognised by its message.
bool EndedByBusyServer(const ::grpc::Status& status) {
  const std::string message = status.error_message();
  return status.error_code() == ::grpc::StatusCode::RESOURCE_EXHAUSTED &&
         (message.find(kCalm) != std::string::npos ||
          message.starts_with(kEndedForOthers));
}

}  // namespace

::grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return ::grpc::Status::OK;
  std::string message(status.message().substr(0, kMaxMessage));
  std::string details;
  if (const auto payload = status.GetPayload(AbslView(kErrorInfoUrl))) {
    v1::StatusDetails proto;
    proto.set_code(static_cast<int>(status.code()));
    proto.set_message(message);
    v1::StatusDetails::Detail& detail = *proto.add_details();
    detail.set_type_url(std::string(kErrorInfoUrl));
    detail.set_value(std::string(*payload));
    details = proto.SerializeAsString();
  }
  return ::grpc::Status(static_cast<::grpc::StatusCode>(status.code()),
                        std::move(message), std::move(details));
}

absl::Status FromGrpcStatus(const ::grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  const bool known = code > 0 && code <= 16;
  absl::Status result(
      known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
      status.error_message());
  if (EndedByBusyServer(status)) {
    return WithErrorInfo(
        result, {.partition = std::nullopt, .retry_after = kRetryAfter});
  }
  v1::StatusDetails proto;
  if (!proto.ParseFromString(status.error_details())) return result;
  for (const v1::StatusDetails::Detail& detail : proto.details()) {
    if (detail.type_url() == kErrorInfoUrl) {
      result.SetPayload(AbslView(kErrorInfoUrl), absl::Cord(detail.value()));
    }
  }
  return result;
}

}  // namespace millrace
