// SPDX-License-Identifier: Apache-2.0
// The environment variables that control the stand-in for NCCL; ../README.md
// describes them.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace millrace::ncclemu {

// The order in which the values of the ranks are added. In a ring the parts of
// an array start at different ranks; a tree adds pairs.
enum class AdditionOrder : int { kRank, kRing, kTree, kRandom };

// The `call`th call of a function, counted from 1, gives `result`.
struct PlannedResult {
  std::string function;
  std::optional<int> rank;  // the calls of all ranks count if it is not set
  int call;
  ncclResult_t result;
};

struct NcclSettings {
  std::string folder;  // where the ranks meet
  AdditionOrder order;
  absl::Duration init_delay;
  absl::Duration max_delay;  // of operations
  bool reports_dead;         // ranks; else operations wait for them for ever
  bool mismatch_hangs;       // else it is also a fault of the device
  std::vector<PlannedResult> planned_results;
};

// Reads the environment at the first call.
const NcclSettings& GetNcclSettings();

// Says something on stderr.
void Say(const std::string& text);

}  // namespace millrace::ncclemu
