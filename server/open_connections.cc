// SPDX-License-Identifier: Apache-2.0
#include "server/open_connections.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/file_limit.h"
#include "common/net/ip_network.h"

namespace millrace {
namespace {

// More take memory, and are more than a fleet needs.
constexpr int64_t kMaxConnections = 16384;
// Looks take at most 1/kLookShare of the time.
constexpr int kLookShare = 20;

std::optional<uint64_t> CookieOf(int socket) {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) {
    return std::nullopt;
  }
  return cookie;
}

}  // namespace

ConnectionLimits DecideLimits(const ConnectionLimits& given) {
  ConnectionLimits limits = given;
  if (limits.all == 0) {
    const int64_t files = FileLimit();
    limits.all = static_cast<int>(
        std::clamp<int64_t>(files - files / 4, 1, kMaxConnections));
  }
  if (limits.per_address == 0) limits.per_address = (limits.all + 3) / 4;
  return limits;
}

OpenConnections::Verdict OpenConnections::Add(int socket,
                                              const std::string& address) {
  // A socket with this descriptor is closed by now.
  Forget(socket);
  Verdict verdict = Judge(address);
  if (verdict != Verdict::kAdded) {
    Look();
    verdict = Judge(address);
  }
  const auto cookie = CookieOf(socket);
  if (verdict == Verdict::kAdded && cookie.has_value()) {
    open_[socket] = {.cookie = *cookie, .address = address};
    ++by_address_[address];
  }
  return verdict;
}

int OpenConnections::Count() {
  Look();
  return static_cast<int>(open_.size());
}

OpenConnections::Verdict OpenConnections::Judge(
    const std::string& address) const {
  if (open_.size() >= static_cast<size_t>(limits_.all)) {
    return Verdict::kTooMany;
  }
  const auto found = by_address_.find(address);
  const bool many =
      found != by_address_.end() && found->second >= limits_.per_address;
  return many ? Verdict::kTooManyFromAddress : Verdict::kAdded;
}

void OpenConnections::Forget(int socket) {
  const auto known = open_.find(socket);
  if (known == open_.end()) return;
  const auto address = by_address_.find(known->second.address);
  if (--address->second == 0) by_address_.erase(address);
  open_.erase(known);
}

void OpenConnections::Look() {
  const SteadyTime start = SteadyNow();
  if (start < next_look_) return;
  std::vector<int> closed;
  for (const auto& [socket, known] : open_) {
    if (CookieOf(socket) != known.cookie) closed.push_back(socket);
  }
  for (const int socket : closed) Forget(socket);
  const SteadyTime end = SteadyNow();
  next_look_ = end + kLookShare * (end - start);
}

std::string AddressOf(int socket) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  auto* generic = reinterpret_cast<sockaddr*>(&peer);
  if (getpeername(socket, generic, &length) != 0) return "";
  return peer.ss_family == AF_INET6
             ? NetworkOf(reinterpret_cast<sockaddr_in6*>(&peer)->sin6_addr)
             : NetworkOf(reinterpret_cast<sockaddr_in*>(&peer)->sin_addr);
}

}  // namespace millrace
