// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "absl/time/time.h"

namespace millrace {

// Queues the tasks of several clients so that each client gets an equal share
// of running time.
//
// Tasks of one client run in the order in which they were added. Among clients,
// the one with the fewest running tasks comes next, and among those with
// equally many the one whose ended tasks have used the least time (start-time
// fair queueing; Goyal, Vin and Cheng 1996). So many or long tasks of one
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

  // `owner`, if not null, names the task for Remove(); only one task of an
  // owner may wait at a time.
  void Add(const std::string& client, Task task, const void* owner = nullptr);

  // Takes out the task of `owner` without running it. Null if none waits.
  Task Remove(const void* owner);

  // The next task. There must be one.
  Running Take();

  // Reports that a task taken for `client` has ended after running for `used`.
  void End(const std::string& client, absl::Duration used);

  size_t waiting() const { return waiting_; }
  size_t running() const { return running_; }

 private:
  struct Waiting {
    Task task;
    const void* owner;
  };
  struct Client {
    size_t running = 0;    // tasks
    absl::Duration used;   // running time charged so far
    uint64_t arrival = 0;  // of its first task; breaks ties
    std::list<Waiting> waiting;
    std::string name;
  };
  struct ComesFirst {
    bool operator()(const Client* a, const Client* b) const {
      return std::tie(a->running, a->used, a->arrival) <
             std::tie(b->running, b->used, b->arrival);
    }
  };
  struct Place {
    Client* client;
    std::list<Waiting>::iterator task;
  };

  Waiting TakeOut(Client& client, std::list<Waiting>::iterator task);
  void ForgetIdleClients();

  // Clients that have tasks, and idle ones that are still remembered.
  std::map<std::string, Client> clients_;
  // Clients with waiting tasks. What orders a client changes only while the
  // client is not in here.
  std::set<Client*, ComesFirst> ready_;
  std::unordered_map<const void*, Place> owners_;  // of waiting tasks
  // What the client of the last task taken had used: where new ones start.
  absl::Duration level_;
  uint64_t arrivals_ = 0;
  size_t waiting_ = 0;  // tasks
  size_t running_ = 0;  // tasks
  size_t forget_at_;    // clients
};

}  // namespace millrace
