// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/time/time.h"

namespace millrace {

// Tasks of several clients, ordered so that all clients get the same time of
// whoever runs them.
//
// Tasks of one client run in the order in which they were added. Among clients,
// the one whose tasks have used the least time comes next (start-time fair
// queueing; Goyal, Vin and Cheng 1996), so that many or long tasks of one
// client hold up those of another by no more than the tasks that already run.
// A client that comes back starts level with the others, or where it stood if
// it had used more than they: idle time cannot be saved up.
// Threads: one at a time.
class FairQueue {
 public:
  using Task = std::function<void()>;

  FairQueue();

  // A task that was taken out and runs.
  struct Running {
    Task task;
    std::string client;
  };

  void Add(const std::string& client, Task task);

  // The next task. There must be one.
  Running Take();

  // Tells that a task of `client` that was taken has ended.
  void End(const std::string& client, absl::Duration used);

  size_t waiting() const { return waiting_; }
  size_t running() const { return running_; }

 private:
  struct Client {
    absl::Duration used;   // since a start that all have in common
    uint64_t arrival = 0;  // of its first task; breaks ties
    std::deque<Task> waiting;
    size_t running = 0;
    std::string name;
  };
  struct ComesFirst {
    bool operator()(const Client* a, const Client* b) const {
      return std::tie(a->used, a->arrival) < std::tie(b->used, b->arrival);
    }
  };

  void ForgetIdleClients();

  // Those with tasks, and some that have used more than the others.
  std::map<std::string, Client> clients_;
  std::set<Client*, ComesFirst> ready_;  // with tasks that wait
  // What the client of the last task taken had used: where new ones start.
  absl::Duration level_;
  uint64_t arrivals_ = 0;
  size_t waiting_ = 0;  // tasks
  size_t running_ = 0;  // tasks
  size_t forget_at_;    // clients
};

}  // namespace millrace
