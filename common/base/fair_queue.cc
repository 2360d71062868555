// SPDX-License-Identifier: Apache-2.0
#include "common/base/fair_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace millrace {
namespace {

constexpr size_t kForgetAt = 4096;

}  // namespace

FairQueue::FairQueue() : forget_at_(kForgetAt) {}

void FairQueue::Add(const std::string& client, Task task, const void* owner) {
  if (clients_.size() >= forget_at_) ForgetIdleClients();
  Client& adding = clients_[client];
  if (adding.waiting.empty() && adding.running == 0) {
    adding.name = client;
    adding.used = std::max(adding.used, level_);
    adding.arrival = ++arrivals_;
  }
  adding.waiting.push_back({std::move(task), owner});
  if (owner != nullptr) {
    owners_[owner] = {&adding, std::prev(adding.waiting.end())};
  }
  ready_.insert(&adding);
  ++waiting_;
}

FairQueue::Task FairQueue::Remove(const void* owner) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return nullptr;
  const auto [client, task] = found->second;
  ready_.erase(client);
  Waiting removed = TakeOut(*client, task);
  if (!client->waiting.empty()) ready_.insert(client);
  return std::move(removed.task);
}

FairQueue::Running FairQueue::Take() {
  Client& next = **ready_.begin();
  ready_.erase(ready_.begin());
  level_ = std::max(level_, next.used);
  Running taken{TakeOut(next, next.waiting.begin()).task, next.name};
  ++next.running;
  ++running_;
  if (!next.waiting.empty()) ready_.insert(&next);
  return taken;
}

FairQueue::Waiting FairQueue::TakeOut(Client& client,
                                      std::list<Waiting>::iterator task) {
  Waiting taken = std::move(*task);
  client.waiting.erase(task);
  if (taken.owner != nullptr) owners_.erase(taken.owner);
  --waiting_;
  return taken;
}

void FairQueue::End(const std::string& client, absl::Duration used) {
  Client& ended = clients_.at(client);
  ready_.erase(&ended);
  --ended.running;
  --running_;
  ended.used += used;
  if (!ended.waiting.empty()) ready_.insert(&ended);
}

void FairQueue::ForgetIdleClients() {
  std::erase_if(clients_, [](const auto& entry) {
    return entry.second.waiting.empty() && entry.second.running == 0;
  });
  forget_at_ = std::max(kForgetAt, 2 * clients_.size());
}

}  // namespace millrace
