// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace millrace {

// A call in flight. Any thread may cancel; its CallDone still runs.
class Call {
 public:
  virtual ~Call() = default;
  virtual void Cancel() = 0;
};

// Runs exactly once, on a thread of gRPC or of a CallTimer, and must not block.
using CallDone = std::function<void(absl::Status)>;

}  // namespace millrace
