// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/grpc/address_list.h"

namespace millrace {

// Reads an AddressList for someone who cannot wait: a look-up of a name or a
// file on a lost mount can take minutes, or for ever, and cannot be
// interrupted. One thread reads, from the first Start() on.
// Threads: Start() one at a time; Stop() any.
class ListReader {
 public:
  using Result = absl::StatusOr<std::vector<std::string>>;

  explicit ListReader(AddressList list);
  // Stops and joins the thread. Only a read that hangs for 2 s more is left
  // behind, with its thread: that owns all it touches, calls nobody, and ends
  // when the read does, or with the process.
  ~ListReader();
  ListReader(const ListReader&) = delete;
  ListReader& operator=(const ListReader&) = delete;

  // Begins a read and returns; `done` gets what AddressList::Read() said, in
  // the reader's thread or, where nothing has to be waited for, before this
  // returns. One read at a time: not before `done` was called.
  void Start(std::function<void(const Result&)> done);

  // `done` is not called any more once this returned; it waits for one that
  // runs, so it must not hold what that needs. Does not wait for the read.
  void Stop();

 private:
  class State;
  // Shared with the thread, which may be left behind.
  const std::shared_ptr<State> state_;
  std::thread thread_;  // from the first Start() that has to wait
};

}  // namespace millrace
