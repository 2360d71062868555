// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/steady_time.h"
#include "common/net/host_port.h"

namespace millrace {

// Connects to a server's own address now and then, to find out that it accepts
// nobody any more: gRPC gives its port up, without a word, when an accept fails
// once, as it does where a process has no file descriptor left.
//
// An attempt is answered when the server sends a byte or closes the connection,
// which gRPC does of itself. Whatever keeps us from trying, such as a lack of
// file descriptors, says nothing about the server. Nor does one attempt that is
// not answered: the process may have been stopped, or busy.
class AcceptWatch {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(5);   // between attempts
    absl::Duration patience = absl::Seconds(10);  // for an answer
    int attempts = 4;                             // unanswered, in a row
  };

  // `on_lost` runs once, on a thread of this object, when a server that had
  // answered before did not answer that many attempts.
  AcceptWatch(const HostPort& address, const Options& options,
              std::function<void()> on_lost);
  // Does not wait for an attempt to end.
  ~AcceptWatch();
  AcceptWatch(const AcceptWatch&) = delete;
  AcceptWatch& operator=(const AcceptWatch&) = delete;

 private:
  enum class Answer { kYes, kNo, kUnknown };
  struct Address;

  void Run(const Address& address);
  Answer Ask(const Address& address) const;
  // Until `fd` is ready, or -1: never; false at `deadline` or the end.
  bool Await(int fd, short events, SteadyTime deadline) const;
  bool stopping() const;

  const Options options_;
  const std::function<void()> on_lost_;
  const UniqueFd stop_;  // readable once this object ends

  std::thread thread_;  // last: uses all of the above
};

}  // namespace millrace
