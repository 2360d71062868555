// SPDX-License-Identifier: Apache-2.0
#include "server/peers/hop_context.h"

#include <string>

#include "common/base/strings.h"

namespace millrace {

absl::Status HopContext::CheckNotCancelled() const {
  absl::Status status = CallScope::CheckNotCancelled();
  if (status.ok()) return status;
  return absl::Status(status.code(), StrCat(std::string(status.message()),
                                            " in hop ", draw.hop));
}

}  // namespace millrace
