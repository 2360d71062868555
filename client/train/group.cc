// SPDX-License-Identifier: Apache-2.0
#include "client/train/group.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

absl::StatusOr<int> NumberFrom(const char* name, int low, int high) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    return absl::InvalidArgumentError(
        StrCat("WORLD_SIZE is set but ", name,
               " is not\nset all of RANK, "
               "WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or use --workers"));
  }
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < low || value > high) {
    return absl::InvalidArgumentError(StrCat(
        name, " is \"", text, "\", not a number from ", low, " to ", high));
  }
  return value;
}

}  // namespace

absl::StatusOr<GroupAddress> GroupFromEnvironment() {
  GroupAddress group;
  if (std::getenv("WORLD_SIZE") == nullptr) return group;
  MILLRACE_ASSIGN_OR_RETURN(group.world, NumberFrom("WORLD_SIZE", 1, 1 << 20));
  MILLRACE_ASSIGN_OR_RETURN(group.rank, NumberFrom("RANK", 0, group.world - 1));
  if (group.world == 1) return group;
  MILLRACE_ASSIGN_OR_RETURN(const int port,
                            NumberFrom("MASTER_PORT", 1, 65535));
  group.port = static_cast<uint16_t>(port);
  if (const char* host = std::getenv("MASTER_ADDR")) group.host = host;
  return group;
}

}  // namespace millrace
