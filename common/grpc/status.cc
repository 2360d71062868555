// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/status.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "common/base/field_error.h"
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
constexpr char kEnhanceYourCalm[] = "RST_STREAM with error code 11";

// Whether the server ended a call to shed load. gRPC sends no details with
// that, so it is recognised by its message.
bool EndedByBusyServer(const ::grpc::Status& status) {
  const std::string message = status.error_message();
  return status.error_code() == ::grpc::StatusCode::RESOURCE_EXHAUSTED &&
         (message.find(kEnhanceYourCalm) != std::string::npos ||
          message.starts_with(kEndedForOthers));
}

// How gRPC begins its message for a stream that broke off for another reason,
// as behind a proxy, which it reports as INTERNAL.
constexpr char kBrokenOff[] = "Received RST_STREAM with error code";

bool BrokeOff(const ::grpc::Status& status) {
  return status.error_code() == ::grpc::StatusCode::INTERNAL &&
         status.error_details().empty() &&
         status.error_message().starts_with(kBrokenOff);
}

constexpr std::string_view kFieldErrorUrl =
    "type.googleapis.com/millrace.v1.FieldError";

// The encoded FieldError must fit in the trailers with the message. A larger
// one is not sent; the message says the same.
constexpr size_t kMaxFieldError = 1024;

void AddDetail(std::string_view url, std::string value,
               v1::StatusDetails& details) {
  v1::StatusDetails::Detail& detail = *details.add_details();
  detail.set_type_url(std::string(url));
  detail.set_value(std::move(value));
}

void AddFieldError(const FieldError& error, v1::StatusDetails& details) {
  if (error.problem == FieldError::Problem::kUsage) return;
  v1::FieldError proto;
  proto.set_problem(static_cast<v1::FieldError::Problem>(error.problem));
  proto.set_field(error.field);
  proto.set_value(error.value);
  proto.set_limit(error.limit);
  proto.set_other_field(error.other_field);
  proto.set_other_value(error.other_value);
  if (proto.ByteSizeLong() > kMaxFieldError) return;
  AddDetail(kFieldErrorUrl, proto.SerializeAsString(), details);
}

void TakeFieldError(const std::string& bytes, absl::Status& status) {
  v1::FieldError proto;
  if (!proto.ParseFromString(bytes) ||
      !v1::FieldError::Problem_IsValid(proto.problem())) {
    return;
  }
  SetFieldError({.problem = static_cast<FieldError::Problem>(proto.problem()),
                 .field = proto.field(),
                 .value = proto.value(),
                 .limit = proto.limit(),
                 .other_field = proto.other_field(),
                 .other_value = proto.other_value()},
                status);
}

// Returns as much of the text as kMaxMessage bytes hold, cut between
// characters: a string of protobuf must be UTF-8.
std::string Shortened(absl::string_view text) {
  size_t end = std::min(text.size(), kMaxMessage);
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  while (end > 0 && end < text.size() && continues(end)) --end;
  return std::string(text.substr(0, end));
}

}  // namespace

::grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return ::grpc::Status::OK;
  const std::string message = Shortened(status.message());
  v1::StatusDetails proto;
  if (const auto payload = status.GetPayload(AbslView(kErrorInfoUrl))) {
    AddDetail(kErrorInfoUrl, std::string(*payload), proto);
  }
  if (const std::optional<FieldError> error = GetFieldError(status)) {
    AddFieldError(*error, proto);
  }
  std::string details;
  if (proto.details_size() > 0) {
    proto.set_code(static_cast<int>(status.code()));
    proto.set_message(message);
    details = proto.SerializeAsString();
  }
  return {static_cast<::grpc::StatusCode>(status.code()), message, details};
}

absl::Status FromGrpcStatus(const ::grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (BrokeOff(status)) {
    return absl::UnavailableError(status.error_message());
  }
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
    } else if (detail.type_url() == kFieldErrorUrl) {
      TakeFieldError(detail.value(), result);
    }
  }
  return result;
}

}  // namespace millrace
