// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/grpc/address_list.h"

namespace millrace {

// Reads an AddressList for someone who must be able to leave: a look-up of a
// name or a file on a lost mount can take minutes and cannot be interrupted.
// Threads: Read() one at a time; Stop() any. The destructor never blocks.
class ListReader {
 public:
  explicit ListReader(AddressList list);
  ~ListReader();
  ListReader(const ListReader&) = delete;
  ListReader& operator=(const ListReader&) = delete;

  // Errors of AddressList::Read(). CANCELLED: Stop() was called.
  absl::StatusOr<std::vector<std::string>> Read();
  void Stop();

 private:
  struct State;
  // Shared with the thread of a read that nobody waits for any more.
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
