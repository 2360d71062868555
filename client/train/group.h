// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace millrace {

// This process's place in a group of trainers, as torchrun says it.
struct GroupAddress {
  int rank = 0;
  int world = 1;
  std::string host = "127.0.0.1";  // of rank 0
  uint16_t port = 0;               // of rank 0's store
};

// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; a group of one when
// WORLD_SIZE is not set. INVALID_ARGUMENT: a variable that is missing or no
// number in its range (names it).
absl::StatusOr<GroupAddress> GroupFromEnvironment();

}  // namespace millrace
