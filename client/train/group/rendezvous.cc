// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/rendezvous.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/train/group/interruptible_call.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Time between two attempts, and for one address to answer.
constexpr int kSliceMs = 100;

struct LookedUp {
  std::vector<SocketAddress> addresses;  // IPv4 first
  std::string error;                     // why there are none
};

absl::StatusOr<std::vector<SocketAddress>> AskSystem(const std::string& host,
                                                     uint16_t port) {
  return Resolve(host, port);
}

LookedUp LookUp(const HostLookup& lookup, const std::string& host,
                uint16_t port) {
  auto found = lookup(host, port);
  if (!found.ok()) return {{}, std::string(found.status().message())};
  std::stable_partition(found->begin(), found->end(),
                        [](const SocketAddress& a) { return !a.is_v6(); });
  return {*std::move(found), ""};
}

// Returns no addresses if the resolver takes too long.
absl::StatusOr<LookedUp> LookUpUntil(const GroupAddress& group,
                                     SteadyTime deadline,
                                     const HostLookup& lookup = AskSystem) {
  absl::StatusOr<LookedUp> found = CallInterruptibly(
      deadline, [lookup, host = group.host, port = group.port] {
        return LookUp(lookup, host, port);
      });
  if (absl::IsDeadlineExceeded(found.status())) {
    return LookedUp{{}, "no name server answers"};
  }
  return found;
}

std::string Text(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(1)));
}

// Returns whether somebody listens there. If so, sets `own` to the address of
// this end of the connection, otherwise `error` to the reason.
bool Reaches(const SocketAddress& address, SocketAddress& own,
             std::string& error) {
  const UniqueFd fd(
      socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), address.get(), address.length) != 0) {
    int cause = errno;
    socklen_t length = sizeof(cause);
    pollfd connecting{fd.get(), POLLOUT, 0};
    if (cause == EINPROGRESS && poll(&connecting, 1, kSliceMs) == 1) {
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &cause, &length);
    }
    if (cause != 0) {
      error = cause == EINPROGRESS ? "no answer" : std::strerror(cause);
      return false;
    }
  }
  return getsockname(fd.get(), own.get(), &own.length) == 0;
}

// Returns nullopt if this host has none of the addresses.
absl::StatusOr<std::optional<BoundSocket>> BindTo(
    const GroupAddress& group, const std::vector<SocketAddress>& choice) {
  for (const SocketAddress& address : choice) {
    if (address.IsAny()) {
      return absl::FailedPreconditionError(
          StrCat(group.host,
                 " stands for all addresses of a host, but ranks meet at "
                 "one\nset MASTER_ADDR to an address of rank 0's host"));
    }
    UniqueFd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    // The port of a group that has just ended can be used again at once.
    const int yes = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd.get(), address.get(), address.length) == 0) {
      return std::optional(
          BoundSocket{std::move(fd), address.Host(), address.IsLoopback()});
    }
    if (errno == EADDRNOTAVAIL) continue;
    return absl::UnavailableError(
        StrCat("rank 0 cannot listen at ", group.host, ":", group.port, " (",
               address.Host(), "): ", std::strerror(errno),
               "\nset MASTER_PORT to a free port of this host, on every rank"));
  }
  return std::nullopt;
}

// Whether it is an address, which does not move to another host, and no name.
bool IsAddress(const std::string& host) {
  return Resolve(host, /*port=*/0, AI_NUMERICHOST).ok();
}

std::string ListOf(const std::vector<SocketAddress>& addresses) {
  return absl::StrJoin(addresses, ", ",
                       [](std::string* out, const SocketAddress& address) {
                         out->append(address.Host());
                       });
}

absl::Status NoAddressError(const GroupAddress& group, const LookedUp& host) {
  if (host.addresses.empty()) {
    return absl::UnavailableError(
        StrCat("rank 0's host ", group.host, " has no address: ", host.error,
               "\nset MASTER_ADDR to an address of rank 0's host"));
  }
  const std::string addresses = ListOf(host.addresses);
  return absl::FailedPreconditionError(StrCat(
      group.host, addresses == group.host ? "" : StrCat(" (", addresses, ")"),
      " is not an address of this host, where rank 0 runs\nset MASTER_ADDR to "
      "rank 0's host; if the others reach it by an address that it does not "
      "have itself, set MASTER_ADDR at rank 0 to the one that it has"));
}

}  // namespace

WaitNotice::WaitNotice(SteadyTime deadline)
    : deadline_(deadline), next_(SteadyNow() + absl::Seconds(1)) {}

void WaitNotice::Say(const std::string& what) {
  const SteadyTime now = SteadyNow();
  if (now < next_) return;
  next_ = now + absl::Seconds(5);
  LogInfo("waiting",
          {{"for", what},
           {"seconds_left",
            std::max(absl::ToInt64Seconds(deadline_ - now), int64_t{0})}});
}

absl::StatusOr<BoundSocket> BindAtMeetingPoint(const GroupAddress& group,
                                               absl::Duration timeout,
                                               const HostLookup& lookup) {
  const SteadyTime deadline = SteadyNow() + timeout;
  WaitNotice notice(deadline);
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(const LookedUp host,
                              LookUpUntil(group, deadline, lookup));
    MILLRACE_ASSIGN_OR_RETURN(std::optional<BoundSocket> bound,
                              BindTo(group, host.addresses));
    if (bound.has_value()) return *std::move(bound);
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (IsAddress(group.host) || SteadyNow() >= deadline) {
      return NoAddressError(group, host);
    }
    notice.Say(StrCat("an address of ", group.host, " that this host has, ",
                      "where rank 0 runs: ",
                      host.addresses.empty()
                          ? host.error
                          : StrCat("it is ", ListOf(host.addresses))));
    absl::SleepFor(absl::Milliseconds(kSliceMs));
  }
}

absl::StatusOr<BoundSocket> BindAtMeetingPoint(const GroupAddress& group,
                                               absl::Duration timeout) {
  return BindAtMeetingPoint(group, timeout, AskSystem);
}

absl::StatusOr<MeetingPoint> FindMeetingPoint(const GroupAddress& group,
                                              absl::Duration timeout) {
  const SteadyTime start = SteadyNow();
  const SteadyTime deadline = start + timeout;
  const std::string who =
      StrCat(group.agent_listens ? "torchrun's agent" : "rank 0", " at ",
             group.host, ":", group.port);
  WaitNotice notice(deadline);
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(const LookedUp host,
                              LookUpUntil(group, deadline));
    std::string error = host.error;
    for (const SocketAddress& address : host.addresses) {
      SocketAddress own;
      if (Reaches(address, own, error)) {
        return MeetingPoint{address.Host(), own.Host(), address.IsLoopback()};
      }
    }
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (SteadyNow() >= deadline) {
      return absl::UnavailableError(
          StrCat("rank ", group.rank, " waited ", Text(SteadyNow() - start),
                 " for ", who, ": ", error,
                 "\nstart rank 0 too, with the same MASTER_ADDR and "
                 "MASTER_PORT"));
    }
    notice.Say(StrCat(who, ": ", error));
    absl::SleepFor(absl::Milliseconds(kSliceMs));
  }
}

absl::StatusOr<std::vector<std::string>> GlooInterfaces() {
  constexpr char kVariable[] = "GLOO_SOCKET_IFNAME";
  const char* text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return std::vector<std::string>();
  std::set<std::string> with_address;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr) continue;
      const int family = at->ifa_addr->sa_family;
      if (family == AF_INET || family == AF_INET6) {
        with_address.insert(at->ifa_name);
      }
    }
    freeifaddrs(list);
  }
  std::vector<std::string> names = absl::StrSplit(text, ',');
  for (std::string& name : names) {
    absl::StripAsciiWhitespace(&name);
    if (with_address.contains(name)) continue;
    return absl::InvalidArgumentError(
        StrCat(kVariable, " is \"", text, "\", but this host has no interface ",
               name, " with an address\nset it to one or more of ",
               absl::StrJoin(with_address, ", "), ", or unset it"));
  }
  return names;
}

}  // namespace millrace
