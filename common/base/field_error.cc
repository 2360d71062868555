// SPDX-License-Identifier: Apache-2.0
#include "common/base/field_error.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr std::string_view kPayloadUrl = "millrace/FieldError";
constexpr std::string_view kReasonUrl = "millrace/Reason";

// A payload is the number of the problem and then the strings, each after its
// length: "1:10:batch_size1:0..."
void AppendPart(std::string_view part, std::string& out) {
  absl::StrAppend(&out, part.size(), ":", AbslView(part));
}

// Reads the number before the next colon.
std::optional<size_t> TakeNumber(std::string_view& in) {
  const size_t colon = in.find(':');
  size_t number = 0;
  if (colon == in.npos ||
      !absl::SimpleAtoi(AbslView(in.substr(0, colon)), &number)) {
    return std::nullopt;
  }
  in.remove_prefix(colon + 1);
  return number;
}

bool TakePart(std::string_view& in, std::string& out) {
  const std::optional<size_t> size = TakeNumber(in);
  if (!size.has_value() || *size > in.size()) return false;
  out = in.substr(0, *size);
  in.remove_prefix(*size);
  return true;
}

std::string WithValue(const std::string& name, const std::string& value) {
  return value.empty() ? name : StrCat(name, " ", value);
}

}  // namespace

std::string ToText(const FieldError& error, const FieldNames& names) {
  using enum FieldError::Problem;
  const std::string field = WithValue(names(error.field), error.value);
  const auto other = [&] {
    return WithValue(names(error.other_field), error.other_value);
  };
  switch (error.problem) {
    case kInvalid:
      return StrCat(field, ": ", error.limit);
    case kOutOfRange:
      return StrCat(field, " is out of range: ", error.limit);
    case kMissing:
      return StrCat(field, " is needed: ", error.limit);
    case kConflict:
      return StrCat(field, " and ", other(), " cannot be used together");
    case kNeeds:
      return StrCat(field, " needs ", other());
    case kTooMuch:
      return StrCat(error.value, "; the limit is ", error.limit);
    case kUsage:
      break;
  }
  return "";
}

absl::Status FieldStatus(absl::StatusCode code, const FieldError& error,
                         Reason reason) {
  absl::Status status(
      code, ToText(error, [](std::string_view f) { return std::string(f); }));
  SetFieldError(error, status);
  return WithReason(std::move(status), reason);
}

absl::Status InvalidField(const FieldError& error, Reason reason) {
  return FieldStatus(absl::StatusCode::kInvalidArgument, error, reason);
}

absl::Status Reworded(const absl::Status& status, std::string_view message) {
  absl::Status reworded(status.code(), AbslView(message));
  for (const std::string_view url : {kPayloadUrl, kReasonUrl}) {
    if (const auto payload = status.GetPayload(AbslView(url))) {
      reworded.SetPayload(AbslView(url), *payload);
    }
  }
  return reworded;
}

absl::Status WithAdvice(const absl::Status& status, std::string_view advice) {
  return Reworded(status, StrCat(std::string(status.message()), "\n", advice));
}

bool HasAdvice(const absl::Status& status) {
  return status.message().find('\n') != absl::string_view::npos;
}

absl::Status WithReason(absl::Status status, Reason reason) {
  if (!reason.word.empty()) {
    status.SetPayload(AbslView(kReasonUrl), absl::Cord(AbslView(reason.word)));
  }
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(AbslView(kReasonUrl));
  return payload.has_value() ? std::string(*payload) : "";
}

absl::Status WithNames(const absl::Status& status, const FieldNames& names) {
  const std::optional<FieldError> error = GetFieldError(status);
  if (!error.has_value() || error->problem == FieldError::Problem::kUsage) {
    return status;
  }
  const std::string said =
      ToText(*error, [](std::string_view f) { return std::string(f); });
  // The message may have gained text on the way, such as the name of a server.
  std::string message(status.message());
  const size_t at = message.find(said);
  if (at == message.npos) return status;
  message.replace(at, said.size(), ToText(*error, names));
  return Reworded(status, message);
}

void SetFieldError(const FieldError& error, absl::Status& status) {
  std::string payload = StrCat(static_cast<int>(error.problem), ":");
  for (const std::string* part : {&error.field, &error.value, &error.limit,
                                  &error.other_field, &error.other_value}) {
    AppendPart(*part, payload);
  }
  status.SetPayload(AbslView(kPayloadUrl), absl::Cord(payload));
}

std::optional<FieldError> GetFieldError(const absl::Status& status) {
  const auto payload = status.GetPayload(AbslView(kPayloadUrl));
  if (!payload.has_value()) return std::nullopt;
  const std::string bytes(*payload);
  std::string_view in = bytes;
  const std::optional<size_t> problem = TakeNumber(in);
  if (!problem.has_value() ||
      *problem > static_cast<size_t>(FieldError::Problem::kUsage)) {
    return std::nullopt;
  }
  FieldError error = {.problem = static_cast<FieldError::Problem>(*problem)};
  for (std::string* part : {&error.field, &error.value, &error.limit,
                            &error.other_field, &error.other_value}) {
    if (!TakePart(in, *part)) return std::nullopt;
  }
  return error;
}

absl::Status UsageError(std::string_view message) {
  return AsUsageError(absl::InvalidArgumentError(AbslView(message)));
}

absl::Status UnsupportedError(std::string_view message) {
  return AsUsageError(absl::UnimplementedError(AbslView(message)));
}

absl::Status AsUsageError(absl::Status status) {
  if ((absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) &&
      !GetFieldError(status).has_value()) {
    SetFieldError({.problem = FieldError::Problem::kUsage}, status);
  }
  return status;
}

bool IsUsageError(const absl::Status& status) {
  return (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) &&
         GetFieldError(status).has_value();
}

}  // namespace millrace
