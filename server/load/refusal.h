// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The reason as a label of millrace_refused_calls_total: "places", ...
std::string_view RefusalName(RefusalReason reason);

// Marks `status`, which must not be OK, as a refusal. The mark stays in this
// process: clients do not see it.
absl::Status WithRefusal(absl::Status status, RefusalReason reason);

// The name of the reason that WithRefusal() has given a status; empty if there
// is none.
std::string_view RefusalOf(const absl::Status& status);

}  // namespace millrace
