// SPDX-License-Identifier: Apache-2.0
#include "server/load/acceptor.h"

#include <poll.h>

#include <utility>

#include "common/base/log.h"

namespace millrace {
namespace {

constexpr absl::Duration kWarningInterval = absl::Seconds(10);

}  // namespace

Acceptor::Acceptor(std::unique_ptr<ListeningSocket> socket,
                   const ConnectionLimits& limits, Take take)
    : limits_(limits),
      take_(std::move(take)),
      socket_(std::move(socket)),
      connections_(limits),
      thread_([this] { Run(); }) {}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  socket_->Wake();
  thread_.join();
  socket_.reset();
}

int Acceptor::open() const {
  MutexLock lock(&mutex_);
  return connections_.Count();
}

uint64_t Acceptor::refused() const {
  MutexLock lock(&mutex_);
  return refused_;
}

uint64_t Acceptor::ended_for_others() const {
  MutexLock lock(&mutex_);
  return ended_for_others_;
}

void Acceptor::Run() {
  pollfd wait = {socket_->fd(), POLLIN, 0};
  uint64_t dropped = 0;
  while (!stopping_) {
    poll(&wait, 1, /*timeout=*/-1);
    if (UniqueFd connection = socket_->Accept(); connection.get() >= 0) {
      Admit(std::move(connection));
    }
    if (socket_->dropped() == dropped) continue;
    MutexLock lock(&mutex_);
    refused_ += socket_->dropped() - dropped;
    dropped = socket_->dropped();
  }
}

void Acceptor::Admit(UniqueFd connection) {
  const std::string address = FindAddress(connection.get());
  if (address.empty()) return;
  Verdict verdict;
  std::string ended;  // address of the connection that made room
  {
    MutexLock lock(&mutex_);
    verdict = connections_.Add(connection.get(), address);
    if (verdict == Verdict::kTookPlace) {
      ++ended_for_others_;
      ended = connections_.last_ended_address();
    } else if (verdict != Verdict::kAdded) {
      ++refused_;
    }
  }
  if (verdict == Verdict::kTookPlace) WarnOfEnd(ended, address);
  if (verdict == Verdict::kAdded || verdict == Verdict::kTookPlace) {
    return take_(std::move(connection));
  }
  WarnOfRefusal(address, verdict);
}

uint64_t Acceptor::Unreported::Add() {
  ++count;
  const SteadyTime now = SteadyNow();
  if (now < next_warning) return 0;
  next_warning = now + kWarningInterval;
  return std::exchange(count, 0);
}

void Acceptor::WarnOfRefusal(const std::string& address, Verdict verdict) {
  const uint64_t count = unreported_refusals_.Add();
  if (count == 0) return;
  const bool all = verdict == Verdict::kTooMany;
  LogWarning(
      LogComponent::kServer, "connections refused",
      {{"count", count},
       {"last_address", address},
       {"reason", all ? "max_connections" : "max_connections_per_address"},
       {"limit", all ? limits_.all : limits_.per_address}});
}

void Acceptor::WarnOfEnd(const std::string& ended, const std::string& address) {
  const uint64_t count = unreported_ends_.Add();
  if (count == 0) return;
  LogWarning(LogComponent::kServer,
             "connections ended to make room for other addresses",
             {{"count", count},
              {"last_address", ended},
              {"last_for", address},
              {"reason", "max_connections"},
              {"limit", limits_.all}});
}

}  // namespace millrace
