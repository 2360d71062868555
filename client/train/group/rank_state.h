// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

// What each rank periodically reports about itself to the others.
struct RankState {
  int64_t beats = 0;      // grows by one each time
  bool finished = false;  // it is done, and this is its last message
  absl::Status failure;   // why it has failed; OK if it has not
};

std::string ToText(const RankState& state);
// Returns nullopt if the text is not a state. In a failure's message, replaces
// control characters other than line ends by '?' and cuts off a long message,
// since anyone may have written it if the group has no secret.
std::optional<RankState> RankStateFrom(std::string_view text);

}  // namespace millrace
