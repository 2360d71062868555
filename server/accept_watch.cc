// SPDX-License-Identifier: Apache-2.0
#include "server/accept_watch.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace millrace {

struct AcceptWatch::Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;  // 0: none

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
  static Address Of(const HostPort& address) {
    Address result;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(),
                    &hints, &found) != 0) {
      return result;
    }
    std::memcpy(&result.bytes, found->ai_addr, found->ai_addrlen);
    result.length = found->ai_addrlen;
    freeaddrinfo(found);
    return result;
  }
};

AcceptWatch::AcceptWatch(const HostPort& address, const Options& options,
                         std::function<void()> on_lost)
    : options_(options),
      on_lost_(std::move(on_lost)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      thread_([this, to = Address::Of(address)] { Run(to); }) {}

AcceptWatch::~AcceptWatch() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void AcceptWatch::Run(const Address& address) {
  int unanswered = 0;
  // Where we never got an answer, we ask in a wrong way.
  bool answered = false;
  while (address.length > 0 && !stopping()) {
    const Answer answer = Ask(address);
    if (stopping()) return;
    answered |= answer == Answer::kYes;
    if (answer == Answer::kYes) unanswered = 0;
    if (answer == Answer::kNo && answered) ++unanswered;
    if (unanswered == options_.attempts) return on_lost_();
    Await(-1, 0, SteadyNow() + options_.interval);
  }
}

AcceptWatch::Answer AcceptWatch::Ask(const Address& address) const {
  const SteadyTime deadline = SteadyNow() + options_.patience;
  const UniqueFd client(socket(address.get()->sa_family,
                               SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (client.get() < 0) return Answer::kUnknown;
  int error = 0;
  if (connect(client.get(), address.get(), address.length) != 0) error = errno;
  if (error == EINPROGRESS) {
    if (!Await(client.get(), POLLOUT, deadline)) return Answer::kNo;
    socklen_t length = sizeof error;
    getsockopt(client.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == ECONNREFUSED) return Answer::kNo;
  if (error != 0) return Answer::kUnknown;
  // The kernel connects on its own; that we have nothing to say is for the
  // server to answer.
  shutdown(client.get(), SHUT_WR);
  return Await(client.get(), POLLIN, deadline) ? Answer::kYes : Answer::kNo;
}

bool AcceptWatch::Await(int fd, short events, SteadyTime deadline) const {
  pollfd ready[] = {{fd, events, 0}, {stop_.get(), POLLIN, 0}};
  while (true) {
    const auto left = std::max<int64_t>(
        0, absl::ToInt64Milliseconds(
               absl::Ceil(deadline - SteadyNow(), absl::Milliseconds(1))));
    const int count = poll(ready, 2, static_cast<int>(left));
    if (count < 0 && errno == EINTR) continue;
    return count > 0 && ready[0].revents != 0;
  }
}

bool AcceptWatch::stopping() const {
  pollfd ready = {stop_.get(), POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace millrace
