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
// Tasks of one client run in the order in which they were added. The next task
// is taken from the client with the fewest running tasks; ties go to the client
// whose finished tasks have used the least time (start-time fair queueing;
// Goyal, Vin and Cheng 1996). However many tasks a client adds, and however
// long they are, other clients wait only for those that are already running. A
// client that returns after being idle starts level with the others, or where
// it stood if it had used more than they have: idle time cannot be saved up.
// Not thread-safe.
class FairQueue {
 public:
  using Task = std::function<void()>;

  FairQueue();

  // A task that was taken from the queue and is running.
  struct Running {
    Task task;
    std::string client;
  };

  // `owner`, if not null, names the task for Remove(); only one task of an
  // owner may wait at a time.
  void Add(const std::string& client, Task task, const void* owner = nullptr);

  // Removes the task of `owner` without running it. Null if none is waiting.
  Task Remove(const void* owner);

  // Takes the next task. The queue must not be empty.
  Running Take();

  // Reports that a task taken for `client` has finished after running for
  // `used`.
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
    uint64_t arrival = 0;  // when its first task was added; breaks ties
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
  // Clients with waiting tasks. The fields that ComesFirst compares change only
  // while the client is not in this set.
  std::set<Client*, ComesFirst> ready_;
  std::unordered_map<const void*, Place> owners_;  // waiting tasks by owner
  // The largest `used` that any client had when one of its tasks was taken. New
  // clients start at this value.
  absl::Duration level_;
  uint64_t arrivals_ = 0;
  size_t waiting_ = 0;  // tasks
  size_t running_ = 0;  // tasks
  size_t forget_at_;    // clients
};

}  // namespace millrace
