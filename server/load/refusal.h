// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

// Why a server refused a call that was not at fault itself.
enum class RefusalReason {
  kConnection,  // too many calls of one connection
  kPlaces,      // too many calls
  kMemory,      // no memory now
  kShare,       // no memory now, and the client would exceed its fair share
  kTooLarge,    // more than all of the memory
  kDraining,    // the server is about to stop
  kStore,       // the client means another store
  kPartition,   // the partition is not served here
  kDamaged,     // the partition is damaged
};

inline constexpr std::array kRefusalReasons = {
    RefusalReason::kConnection, RefusalReason::kPlaces,
    RefusalReason::kMemory,     RefusalReason::kShare,
    RefusalReason::kTooLarge,   RefusalReason::kDraining,
    RefusalReason::kStore,      RefusalReason::kPartition,
    RefusalReason::kDamaged};

// The reason as a label of millrace_refused_calls_total: "places", ...
std::string_view RefusalName(RefusalReason reason);

// Marks `status`, which must not be OK, as a refusal. The mark stays in this
// process: clients do not see it.
absl::Status WithRefusal(absl::Status status, RefusalReason reason);

// The reason that WithRefusal() has given a status; nullopt if there is none.
std::optional<RefusalReason> RefusalOf(const absl::Status& status);

}  // namespace millrace
