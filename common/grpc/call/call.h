// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace millrace {

// A call in flight. Any thread may cancel it; its CallDone still runs.
class Call {
 public:
  virtual ~Call() = default;
  virtual void Cancel() = 0;
};

// Called exactly once, on a gRPC thread or the thread of a CallTimer. Must not
// block.
using CallDone = std::function<void(absl::Status)>;

}  // namespace millrace
