// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/grpc/fleet/address_list.h"

namespace millrace {

// Reads an AddressList in the background, for callers that must not block:
// resolving a name or reading a file on a lost mount can take minutes, or
// forever, and cannot be interrupted. The reading thread starts with the first
// Start() that needs one.
// Threads: one at a time may call Start(), any may call Stop().
class ListReader {
 public:
  using Result = absl::StatusOr<std::vector<std::string>>;

  explicit ListReader(AddressList list);
  // Stops and joins the thread. If a read hangs for another 2 s, its thread is
  // left behind: it owns everything it touches, calls nothing, and ends with
  // the read or with the process.
  ~ListReader();
  ListReader(const ListReader&) = delete;
  ListReader& operator=(const ListReader&) = delete;

  // Starts a read. `done` is called with the result of AddressList::Read(), on
  // the reader's thread or, if reading cannot block, before this returns. Must
  // not be called again before `done` has been called.
  void Start(std::function<void(const Result&)> done);

  // Once this returns, `done` will not be called. If `done` is running, waits
  // for it, so the caller must not hold a lock that `done` needs. Does not wait
  // for the read.
  void Stop();

 private:
  class State;
  // Shared with the thread, which may be left behind.
  const std::shared_ptr<State> state_;
  std::thread thread_;  // started by the first Start() that may block
};

}  // namespace millrace
