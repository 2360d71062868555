// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace millrace {

// The state of a server, as far as another program of the fleet knows.
enum class MemberState : uint8_t {
  kUnknown,      // has not answered yet
  kReady,        // answers, and belongs to this fleet
  kDraining,     // answers, but takes no new Sample calls
  kUnreachable,  // does not answer
  kRefused,      // has another store or version
};

inline constexpr std::array kMemberStates = {
    MemberState::kUnknown, MemberState::kReady, MemberState::kDraining,
    MemberState::kUnreachable, MemberState::kRefused};

// "unknown", "ready", "draining", "unreachable" or "refused".
std::string_view StateName(MemberState state);

// How many servers there are of each state, by its name; all states are there.
using StateCounts = std::map<std::string_view, int>;
// `names`: the states of servers, as StateName() has them.
StateCounts CountStates(const std::vector<std::string_view>& names);

}  // namespace millrace
