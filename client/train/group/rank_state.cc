// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/rank_state.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kLongestMessage = 4000;

std::string Cleaned(absl::string_view message) {
  std::string cleaned(message.substr(0, kLongestMessage));
  for (char& c : cleaned) {
    if ((c >= 0 && c < ' ' && c != '\n') || c == '\x7f') c = '?';
  }
  return cleaned;
}

}  // namespace

// The text is BEATS FINISHED CODE MESSAGE. FINISHED is 0 or 1; CODE and MESSAGE
// are those of the failure, with CODE 0 for none.
std::string ToText(const RankState& state) {
  return StrCat(state.beats, " ", state.finished ? 1 : 0, " ",
                state.failure.raw_code(), " ", state.failure.message());
}

std::optional<RankState> RankStateFrom(std::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(AbslView(text), absl::MaxSplits(' ', 3));
  RankState state;
  int code = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[0], &state.beats) ||
      !absl::SimpleAtob(parts[1], &state.finished) ||
      !absl::SimpleAtoi(parts[2], &code)) {
    return std::nullopt;
  }
  if (code != 0) {
    state.failure =
        absl::Status(static_cast<absl::StatusCode>(code), Cleaned(parts[3]));
  }
  return state;
}

}  // namespace millrace
