// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/member_state.h"

namespace millrace {

std::string_view StateName(MemberState state) {
  switch (state) {
    case MemberState::kUnknown:
      return "unknown";
    case MemberState::kReady:
      return "ready";
    case MemberState::kDraining:
      return "draining";
    case MemberState::kUnreachable:
      return "unreachable";
    case MemberState::kRefused:
      return "refused";
  }
  return "";
}

StateCounts CountStates(const std::vector<std::string_view>& names) {
  StateCounts counts;
  for (const MemberState state : kMemberStates) counts[StateName(state)] = 0;
  for (const std::string_view name : names) ++counts.at(name);
  return counts;
}

}  // namespace millrace
