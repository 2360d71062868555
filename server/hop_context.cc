// SPDX-License-Identifier: Apache-2.0
#include "server/hop_context.h"

#include "common/base/strings.h"

namespace millrace {

absl::Status HopContext::CheckLive() const {
  if (call.IsCancelled()) {
    return absl::CancelledError(StrCat("the client gave up in hop ", draw.hop));
  }
  if (absl::Now() >= deadline) {
    return absl::DeadlineExceededError(
        StrCat("the deadline passed in hop ", draw.hop));
  }
  return absl::OkStatus();
}

}  // namespace millrace
