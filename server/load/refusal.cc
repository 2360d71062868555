// SPDX-License-Identifier: Apache-2.0
#include "server/load/refusal.h"

#include <array>
#include <cstddef>
#include <string>

#include "absl/strings/cord.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr std::string_view kRefusalUrl = "millrace/refusal";

constexpr std::array<std::string_view, kRefusalReasons.size()> kRefusalNames = {
    "connection", "places", "memory",    "share",  "too_large",
    "draining",   "store",  "partition", "damaged"};

}  // namespace

std::string_view RefusalName(RefusalReason reason) {
  return kRefusalNames[static_cast<size_t>(reason)];
}

absl::Status WithRefusal(absl::Status status, RefusalReason reason) {
  status.SetPayload(AbslView(kRefusalUrl),
                    absl::Cord(AbslView(RefusalName(reason))));
  return status;
}

std::optional<RefusalReason> RefusalOf(const absl::Status& status) {
  const auto payload = status.GetPayload(AbslView(kRefusalUrl));
  if (!payload.has_value()) return std::nullopt;
  for (const RefusalReason reason : kRefusalReasons) {
    if (*payload == AbslView(RefusalName(reason))) return reason;
  }
  return std::nullopt;
}

}  // namespace millrace
