// SPDX-License-Identifier: Apache-2.0
#include "common/base/fair_queue.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// Clients that are remembered before those that are idle are forgotten.
constexpr size_t kForgetAt = 4096;

}  // namespace

FairQueue::FairQueue() : forget_at_(kForgetAt) {}

void FairQueue::Add(const std::string& client, Task task) {
  if (clients_.size() >= forget_at_) ForgetIdleClients();
  Client& owner = clients_[client];
  if (owner.waiting.empty()) {
    if (owner.running == 0) {
      owner.name = client;
      owner.used = std::max(owner.used, level_);
      owner.arrival = ++arrivals_;
    }
    owner.waiting.push_back(std::move(task));
    ready_.insert(&owner);
  } else {
    owner.waiting.push_back(std::move(task));
  }
  ++waiting_;
}

FairQueue::Running FairQueue::Take() {
  Client& next = **ready_.begin();
  level_ = std::max(level_, next.used);
  Running taken{std::move(next.waiting.front()), next.name};
  next.waiting.pop_front();
  if (next.waiting.empty()) ready_.erase(ready_.begin());
  ++next.running;
  --waiting_;
  ++running_;
  return taken;
}

void FairQueue::End(const std::string& client, absl::Duration used) {
  Client& owner = clients_.at(client);
  const bool ready = ready_.erase(&owner) > 0;  // its place changes
  owner.used += used;
  if (ready) ready_.insert(&owner);
  --owner.running;
  --running_;
}

void FairQueue::ForgetIdleClients() {
  std::erase_if(clients_, [](const auto& entry) {
    return entry.second.waiting.empty() && entry.second.running == 0;
  });
  forget_at_ = std::max(kForgetAt, 2 * clients_.size());
}

}  // namespace millrace
