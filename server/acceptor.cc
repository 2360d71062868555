// SPDX-License-Identifier: Apache-2.0
#include "server/acceptor.h"

#include <poll.h>

#include <utility>

#include "spdlog/spdlog.h"

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
  const std::string address = AddressOf(connection.get());
  if (address.empty()) return;
  Verdict verdict;
  {
    MutexLock lock(&mutex_);
    verdict = connections_.Add(connection.get(), address);
    if (verdict != Verdict::kAdded) ++refused_;
  }
  if (verdict == Verdict::kAdded) return take_(std::move(connection));
  WarnOfRefusal(address, verdict);
}

void Acceptor::WarnOfRefusal(const std::string& address, Verdict verdict) {
  ++untold_;
  const SteadyTime now = SteadyNow();
  if (now < next_warning_) return;
  if (verdict == Verdict::kTooMany) {
    spdlog::warn(
        "{} connections refused, the last one from {}: {} are open, as many as "
        "--max-connections allows",
        untold_, address, limits_.all);
  } else {
    spdlog::warn(
        "{} connections refused, the last one from {}, which has {} open, as "
        "many as --max-connections-per-address allows",
        untold_, address, limits_.per_address);
  }
  untold_ = 0;
  next_warning_ = now + kWarningInterval;
}

}  // namespace millrace
