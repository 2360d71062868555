// SPDX-License-Identifier: Apache-2.0
#include "common/base/fair_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/strings.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

// Runs tasks one after the other; each takes the time that its client's do.
class Clients {
 public:
  void Add(const std::string& client, int count = 1) {
    for (int i = 0; i < count; ++i) {
      queue_.Add(client, [this, client] { order_.push_back(client); });
    }
  }
  void Run(int count, absl::Duration a, absl::Duration b = absl::Seconds(1)) {
    for (int i = 0; i < count; ++i) {
      FairQueue::Running running = queue_.Take();
      running.task();
      queue_.End(running.client, running.client == "a" ? a : b);
    }
  }
  const std::vector<std::string>& order() const { return order_; }
  FairQueue& queue() { return queue_; }

 private:
  FairQueue queue_;
  std::vector<std::string> order_;
};

TEST(FairQueueTest, RunsTheTasksOfOneClientInOrder) {
  FairQueue queue;
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    queue.Add("a", [&order, i] { order.push_back(i); });
  }
  while (queue.waiting() > 0) {
    FairQueue::Running running = queue.Take();
    running.task();
    queue.End(running.client, absl::Seconds(1));
  }
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(queue.running(), 0u);
}

TEST(FairQueueTest, TakesTurnsAmongClients) {
  Clients clients;
  clients.Add("a", 5);
  clients.Run(1, absl::Seconds(1));
  clients.Add("b", 2);
  clients.Run(6, absl::Seconds(1));
  EXPECT_THAT(clients.order(), ElementsAre("a", "b", "a", "b", "a", "a", "a"));
}

TEST(FairQueueTest, GivesClientsTheSameTimeRatherThanTheSameNumberOfTasks) {
  Clients clients;
  clients.Add("a", 3);
  clients.Run(1, absl::Seconds(3));
  clients.Add("b", 6);
  clients.Run(8, absl::Seconds(3));
  EXPECT_THAT(clients.order(),
              ElementsAre("a", "b", "b", "b", "a", "b", "b", "b", "a"));
}

// With one task at a time, "a" would else be served as often as "b".
TEST(FairQueueTest, RemembersWhoHasUsedMore) {
  Clients clients;
  clients.Add("a");
  clients.Run(1, absl::Seconds(10));
  clients.Add("b", 4);
  clients.Add("a");
  clients.Run(5, absl::Seconds(10));
  EXPECT_THAT(clients.order(), ElementsAre("a", "b", "b", "b", "b", "a"));
}

TEST(FairQueueTest, IdleClientsSaveUpNoTime) {
  Clients clients;
  clients.Add("b");
  clients.Run(1, absl::Seconds(1));
  clients.Add("a", 100);
  clients.Run(90, absl::Seconds(1));
  clients.Add("b", 3);
  clients.Run(4, absl::Seconds(1));
  EXPECT_THAT(std::vector(clients.order().end() - 4, clients.order().end()),
              ElementsAre("b", "a", "b", "a"));
}

TEST(FairQueueTest, ServesWhateverNumberOfClients) {
  Clients clients;
  for (int i = 0; i < 10000; ++i) clients.Add(StrCat("client ", i));
  clients.Run(5000, absl::Seconds(1));
  for (int i = 0; i < 10000; ++i) clients.Add(StrCat("other ", i));
  clients.Run(15000, absl::Seconds(1));
  EXPECT_EQ(clients.order().size(), 20000u);
  EXPECT_EQ(clients.queue().waiting(), 0u);
  EXPECT_EQ(clients.queue().running(), 0u);
}

}  // namespace
}  // namespace millrace
