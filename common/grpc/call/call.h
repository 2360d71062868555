// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace millrace {

// A call in flight. Any thread may cancel it; its end is still reported.
class Call {
 public:
  virtual ~Call() = default;
  virtual void Cancel() = 0;
};

// Called exactly once, on a gRPC thread or the thread of a CallTimer. Must not
// block.
using CallDone = std::function<void(absl::Status)>;

// Observes one call to one server; called by one thread at a time.
class CallObserver {
 public:
  virtual ~CallObserver() = default;

  // Called on each message before it is used, and so at least once before the
  // call succeeds. An error ends the call: its message must not be used.
  virtual absl::Status OnMessage() = 0;
  // Called exactly once, last.
  virtual void OnEnd(absl::Status status) = 0;
};

}  // namespace millrace
