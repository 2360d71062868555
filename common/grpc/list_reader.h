// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/grpc/address_list.h"

namespace millrace {

// Reads an AddressList for someone who cannot wait: a look-up of a name or a
// file on a lost mount can take minutes and cannot be interrupted.
// Threads: Start() one at a time; Stop() any. The destructor stops.
class ListReader {
 public:
  using Result = absl::StatusOr<std::vector<std::string>>;

  explicit ListReader(AddressList list);
  ~ListReader();
  ListReader(const ListReader&) = delete;
  ListReader& operator=(const ListReader&) = delete;

  // Begins a read and returns; `done` gets what AddressList::Read() said, in
  // another thread or, where nothing has to be waited for, before this
  // returns. One read at a time: not before `done` was called.
  void Start(std::function<void(const Result&)> done);

  // `done` is not called any more once this returned; it waits for one that
  // runs, so it must not hold what that needs. Does not wait for the read.
  void Stop();

 private:
  struct State;
  // Shared with the thread of a read that nobody waits for any more.
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
