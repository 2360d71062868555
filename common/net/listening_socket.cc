// SPDX-License-Identifier: Apache-2.0
#include "common/net/listening_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/net/socket_address.h"

namespace millrace {
namespace {

// How long to stop accepting when even the reserve descriptor is lost.
constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 100'000'000};
constexpr absl::Duration kWarningInterval = absl::Seconds(10);
// A connection is dead if its client acknowledges nothing for this long. gRPC
// waits as long for the answer to a keepalive ping.
constexpr unsigned kUserTimeoutMs = 10'000;
// With port 0, how many ports to try: one that is free on one address may be
// taken on the next.
constexpr int kAttempts = 16;

std::string Advice(int error) {
  switch (error) {
    case EADDRINUSE:
      return "stop the program that uses the port (`ss -tlnp` shows it), or "
             "choose another one; port 0 picks a free one";
    case EACCES:
    case EPERM:
      return "only root can use ports below 1024; choose a larger one";
    case EADDRNOTAVAIL:
      return "give an address of this host; 0.0.0.0 means every IPv4 address, "
             "[::] every address";
    default:
      return "give a name or an address of this host, and a free port";
  }
}

absl::Status CannotListen(const std::string& field, const HostPort& address,
                          std::string_view cause, int error) {
  return WithAdvice(
      FieldStatus(absl::StatusCode::kUnavailable,
                  {.field = field,
                   .value = address.WithPort(address.port),
                   .limit = StrCat("cannot listen there: ", cause)}),
      Advice(error));
}

// Returns a socket that listens on `address`; on failure, -1 with errno set.
// Connections inherit the socket options.
UniqueFd ListenAt(const SocketAddress& address) {
  constexpr int kYes = 1;
  constexpr int kNo = 0;
  UniqueFd made(
      socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int fd = made.get();
  if (fd < 0) return made;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &kYes, sizeof kYes);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kYes, sizeof kYes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
             sizeof kUserTimeoutMs);
  if (address.is_v6() && address.IsAny()) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &kNo, sizeof kNo);
  }
  if (bind(fd, address.get(), address.length) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    const int error = errno;
    made = UniqueFd();
    errno = error;
  }
  return made;
}

// The numeric HOST:PORT at which this host can reach `address`.
std::string Print(const SocketAddress& address) {
  const HostPort numbers{address.IsAny() ? "127.0.0.1" : address.Host(),
                         address.port()};
  return numbers.WithPort(numbers.port);
}

// A name may resolve to addresses that this host does not have, as "localhost"
// does on a host without IPv6.
bool IsMissingHere(int error) {
  return error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

UniqueFd OpenSpare() {
  return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

ListeningSocket::~ListeningSocket() = default;

absl::StatusOr<std::unique_ptr<ListeningSocket>> ListeningSocket::Open(
    const HostPort& address, const std::string& field) {
  std::unique_ptr<ListeningSocket> made(new ListeningSocket);
  made->field_ = field;
  MILLRACE_RETURN_IF_ERROR(made->Listen(address));
  const SocketAddress name = FindLocalAddress(made->sockets_.front().get());
  made->port_ = name.port();
  made->address_ = address.WithPort(made->port_);
  made->local_address_ = Print(name);
  MILLRACE_RETURN_IF_ERROR(made->WatchSockets());
  return made;
}

absl::Status ListeningSocket::Listen(const HostPort& address) {
  auto all = Resolve(address.host, address.port, AI_PASSIVE);
  if (!all.ok()) {
    return CannotListen(field_, address, std::string(all.status().message()),
                        0);
  }
  int error = EADDRNOTAVAIL;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    bool again = false;
    for (SocketAddress& next : *all) {
      if (!sockets_.empty()) {
        next.set_port(FindLocalAddress(sockets_[0].get()).port());
      }
      UniqueFd made = ListenAt(next);
      if (made.get() >= 0) {
        sockets_.push_back(std::move(made));
        continue;
      }
      error = errno;
      if (IsMissingHere(error)) continue;
      again = error == EADDRINUSE && address.port == 0;
      sockets_.clear();
      break;
    }
    if (!sockets_.empty()) return absl::OkStatus();
    if (!again) break;
    for (SocketAddress& next : *all) next.set_port(0);
  }
  return CannotListen(field_, address, std::strerror(error), error);
}

absl::Status ListeningSocket::WatchSockets() {
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  timer_ =
      UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  wake_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  spare_ = OpenSpare();
  if (epoll_.get() < 0 || timer_.get() < 0 || wake_.get() < 0 ||
      spare_.get() < 0) {
    return WithAdvice(FieldStatus(absl::StatusCode::kResourceExhausted,
                                  {.field = field_,
                                   .value = address_,
                                   .limit = std::strerror(errno)}),
                      "allow this process more file descriptors (ulimit -n)");
  }
  const auto watch = [this](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    MILLRACE_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  };
  watch(timer_.get());
  watch(wake_.get());
  for (const UniqueFd& socket : sockets_) watch(socket.get());
  return absl::OkStatus();
}

void ListeningSocket::Wake() const { eventfd_write(wake_.get(), 1); }

UniqueFd ListeningSocket::Accept() {
  epoll_event event{};
  if (epoll_wait(epoll_.get(), &event, 1, /*timeout=*/0) != 1) return {};
  const int ready = event.data.fd;
  if (ready == timer_.get()) {
    ResumeAccepting();
    return {};
  }
  if (ready == wake_.get()) {
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    return {};
  }
  UniqueFd connection(
      accept4(ready, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection.get() >= 0) return connection;
  switch (errno) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
      break;
    case EMFILE:
    case ENFILE:
      DropConnection(ready);
      break;
    default:
      PauseAccepting();
  }
  return {};
}

void ListeningSocket::DropConnection(int listener) {
  spare_ = UniqueFd();
  UniqueFd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  // dup3() closes the connection but keeps its descriptor number, which another
  // thread could otherwise take.
  if (connection.get() >= 0 &&
      dup3(timer_.get(), connection.get(), O_CLOEXEC) >= 0) {
    ++dropped_;
    spare_ = std::move(connection);
  } else {
    spare_ = OpenSpare();
  }
  if (spare_.get() < 0) PauseAccepting();
  const SteadyTime now = SteadyNow();
  if (dropped_ == reported_ || now < next_warning_) return;
  LogWarning(LogComponent::kServer,
             "connections refused\nraise the limit of open files (ulimit -n)",
             {{"count", dropped_ - reported_},
              {"reason", "out of file descriptors"},
              {field_, address_}});
  reported_ = dropped_;
  next_warning_ = now + kWarningInterval;
}

void ListeningSocket::PauseAccepting() {
  for (const UniqueFd& socket : sockets_) {
    epoll_event none{};
    none.data.fd = socket.get();
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.get(), &none);
  }
  const itimerspec once = {.it_interval = {}, .it_value = kPause};
  timerfd_settime(timer_.get(), 0, &once, nullptr);
}

void ListeningSocket::ResumeAccepting() {
  uint64_t count = 0;
  (void)!read(timer_.get(), &count, sizeof count);
  for (const UniqueFd& socket : sockets_) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = socket.get();
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket.get(), &event);
  }
}

}  // namespace millrace
