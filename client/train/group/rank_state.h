// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

// What a rank tells the others about itself, again and again.
struct RankState {
  int64_t beats = 0;      // grows by one each time
  bool finished = false;  // it is done, and this is its last message
  absl::Status failure;   // why it has ended; OK: it has not failed
};

std::string ToText(const RankState& state);
// Nothing if the text is not a state. In a failure's message, control
// characters other than line ends become '?', and a long message is cut off:
// in a group without a secret anyone may have written it.
std::optional<RankState> RankStateFrom(std::string_view text);

}  // namespace millrace
