// SPDX-License-Identifier: Apache-2.0
#include "server/load/connection_calls.h"

#include <optional>

#include "absl/status/status.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"
#include "server/load/refusal.h"

namespace millrace {

absl::StatusOr<ConnectionCalls::Place> ConnectionCalls::Enter(
    std::string connection) {
  {
    MutexLock lock(&mutex_);
    const auto [entry, first] = counts_.try_emplace(connection, 0);
    if (entry->second < max_calls_) {
      ++entry->second;
      return Place(this, std::move(connection));
    }
  }
  const absl::Status full = absl::ResourceExhaustedError(
      StrCat("the connection has ", max_calls_,
             " unfinished calls, the limit\nwait for some of them; the server "
             "takes a moment to notice calls that were cancelled"));
  return WithErrorInfo(WithRefusal(full, RefusalReason::kConnection),
                       {.partition = std::nullopt, .retry_after = kRetryAfter});
}

void ConnectionCalls::Leave(const std::string& connection) {
  MutexLock lock(&mutex_);
  const auto entry = counts_.find(connection);
  if (--entry->second == 0) counts_.erase(entry);
}

}  // namespace millrace
