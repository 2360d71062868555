// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/rank_state.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/field_error.h"
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

// The text is BEATS FINISHED CODE USAGE MESSAGE. FINISHED and USAGE are 0 or 1;
// the last three are those of the failure, with CODE 0 for none.
std::string ToText(const RankState& state) {
  return StrCat(
      state.beats, " ", state.finished ? 1 : 0, " ", state.failure.raw_code(),
      " ", IsUsageError(state.failure) ? 1 : 0, " ", state.failure.message());
}

std::optional<RankState> RankStateFrom(std::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(AbslView(text), absl::MaxSplits(' ', 4));
  RankState state;
  int code = 0;
  bool usage = false;
  if (parts.size() != 5 || !absl::SimpleAtoi(parts[0], &state.beats) ||
      !absl::SimpleAtob(parts[1], &state.finished) ||
      !absl::SimpleAtoi(parts[2], &code) ||
      !absl::SimpleAtob(parts[3], &usage)) {
    return std::nullopt;
  }
  if (code != 0) {
    state.failure =
        absl::Status(static_cast<absl::StatusCode>(code), Cleaned(parts[4]));
    if (usage) state.failure = AsUsageError(std::move(state.failure));
  }
  return state;
}

}  // namespace millrace
