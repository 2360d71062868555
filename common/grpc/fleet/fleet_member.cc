// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/fleet_member.h"

namespace millrace {

std::string_view StateName(FleetMemberInfo::State state) {
  switch (state) {
    case FleetMemberInfo::State::kUnknown:
      return "unknown";
    case FleetMemberInfo::State::kReady:
      return "ready";
    case FleetMemberInfo::State::kDraining:
      return "draining";
    case FleetMemberInfo::State::kUnreachable:
      return "unreachable";
    case FleetMemberInfo::State::kRefused:
      return "refused";
  }
  return "";
}

}  // namespace millrace
