// SPDX-License-Identifier: Apache-2.0
#include "server/load/open_connections.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "common/file/file.h"
#include "common/file/file_limit.h"
#include "common/net/ip_network.h"
#include "common/net/socket_address.h"

namespace millrace {
namespace {

// More would take memory, and no fleet needs them.
constexpr int64_t kMaxConnections = 16384;
// ForgetClosed() may take at most 1/kScanShare of the time.
constexpr int kScanShare = 20;

std::optional<uint64_t> CookieOf(int socket) {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) {
    return std::nullopt;
  }
  return cookie;
}

// Shuts a connection down unless it is already closed. Returns false if no file
// descriptor is left to do it with. Works on a duplicate, because gRPC may
// close `socket` at any time and its number may then be reused.
bool End(int socket, uint64_t cookie) {
  const UniqueFd copy(fcntl(socket, F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0) return errno == EBADF;
  if (CookieOf(copy.get()) == cookie) shutdown(copy.get(), SHUT_RDWR);
  return true;
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
  // Any earlier socket with this descriptor must be closed by now.
  Forget(socket);
  Verdict verdict = Judge(address);
  if (verdict != Verdict::kAdded) {
    ForgetClosed();
    verdict = Judge(address);
  }
  if (verdict == Verdict::kTooMany && TakePlaceFor(address)) {
    verdict = Verdict::kTookPlace;
  }
  const bool added =
      verdict == Verdict::kAdded || verdict == Verdict::kTookPlace;
  const auto cookie = CookieOf(socket);
  if (added && cookie.has_value()) {
    open_[socket] = {.cookie = *cookie, .address = address};
    places_[address].push_back(socket);
    ++taken_places_;
  }
  return verdict;
}

int OpenConnections::Count() {
  ForgetClosed();
  return static_cast<int>(open_.size());
}

OpenConnections::Verdict OpenConnections::Judge(
    const std::string& address) const {
  if (taken_places_ >= static_cast<size_t>(limits_.all)) {
    return Verdict::kTooMany;
  }
  const bool many = HeldBy(address) >= static_cast<size_t>(limits_.per_address);
  return many ? Verdict::kTooManyFromAddress : Verdict::kAdded;
}

size_t OpenConnections::HeldBy(const std::string& address) const {
  const auto found = places_.find(address);
  return found == places_.end() ? 0 : found->second.size();
}

bool OpenConnections::TakePlaceFor(const std::string& address) {
  const size_t held = HeldBy(address);
  const size_t addresses = places_.size() + (held == 0 ? 1 : 0);
  if (held >= static_cast<size_t>(limits_.all) / addresses) return false;
  // Ended connections keep their descriptors until gRPC closes them, so there
  // may be at most a quarter more than the limit.
  const auto all = static_cast<size_t>(limits_.all);
  if (open_.size() >= all + std::max<size_t>(all / 4, 1)) return false;
  // That address exceeds its share, since `address` is below its own.
  const auto most = std::max_element(places_.begin(), places_.end(),
                                     [](const auto& a, const auto& b) {
                                       return a.second.size() < b.second.size();
                                     });
  const int socket = most->second.back();
  Known& known = open_.at(socket);
  if (!End(socket, known.cookie)) return false;
  last_ended_address_ = known.address;
  GiveUpPlace(socket, known);
  return true;
}

void OpenConnections::GiveUpPlace(int socket, Known& known) {
  const auto place = places_.find(known.address);
  std::erase(place->second, socket);
  if (place->second.empty()) places_.erase(place);
  --taken_places_;
  known.has_place = false;
}

void OpenConnections::Forget(int socket) {
  const auto known = open_.find(socket);
  if (known == open_.end()) return;
  if (known->second.has_place) GiveUpPlace(socket, known->second);
  open_.erase(known);
}

void OpenConnections::ForgetClosed() {
  const SteadyTime start = SteadyNow();
  if (start < next_scan_) return;
  std::vector<int> closed;
  for (const auto& [socket, known] : open_) {
    if (CookieOf(socket) != known.cookie) closed.push_back(socket);
  }
  for (const int socket : closed) Forget(socket);
  const SteadyTime end = SteadyNow();
  next_scan_ = end + kScanShare * (end - start);
}

std::string FindAddress(int socket) {
  SocketAddress peer;
  if (getpeername(socket, peer.get(), &peer.length) != 0) return "";
  return peer.is_v6() ? NetworkOf(peer.v6().sin6_addr)
                      : NetworkOf(peer.v4().sin_addr);
}

}  // namespace millrace
