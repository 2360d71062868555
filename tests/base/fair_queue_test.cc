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

// Runs tasks one at a time; the tasks of each client take a given time.
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

// With one task at a time, "a" would otherwise be served as often as "b".
TEST(FairQueueTest, RemembersWhichClientUsedMore) {
  Clients clients;
  clients.Add("a");
  clients.Run(1, absl::Seconds(10));
  clients.Add("b", 4);
  clients.Add("a");
  clients.Run(5, absl::Seconds(10));
  EXPECT_THAT(clients.order(), ElementsAre("a", "b", "b", "b", "b", "a"));
}

// While a task of "a" runs, "b" uses 6 s. "a" is then still charged only for
// its own 2 s.
TEST(FairQueueTest, ClientsWithRunningTasksKeepTheirPlace) {
  FairQueue queue;
  const auto add = [&queue](const std::string& client) {
    queue.Add(client, [] {});
  };
  add("a");
  ASSERT_EQ(queue.Take().client, "a");
  for (const auto used : {absl::Seconds(5), absl::Seconds(1)}) {
    add("b");
    ASSERT_EQ(queue.Take().client, "b");
    queue.End("b", used);
  }
  add("a");
  add("b");
  queue.End("a", absl::Seconds(2));
  EXPECT_EQ(queue.Take().client, "a");
  EXPECT_EQ(queue.Take().client, "b");
}

TEST(FairQueueTest, IdleClientsAccumulateNoCredit) {
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

// "a" adds long tasks while short ones of "b" run on all 8 threads.
TEST(FairQueueTest, LongTasksTakeNoMoreThanAnEqualShareOfThreads) {
  FairQueue queue;
  for (int i = 0; i < 100; ++i) queue.Add("b", [] {});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(queue.Take().client, "b");
  for (int i = 0; i < 8; ++i) queue.Add("a", [] {});
  int running_a = 0;
  for (int i = 0; i < 50; ++i) {
    queue.End("b", absl::Milliseconds(100));
    if (queue.Take().client == "a") ++running_a;
    EXPECT_LE(running_a, 4);
  }
  EXPECT_EQ(running_a, 4);
}

TEST(FairQueueTest, SeveralFreeThreadsGoToSeveralClients) {
  FairQueue queue;
  for (const char* client : {"a", "a", "b", "b"}) queue.Add(client, [] {});
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) order.push_back(queue.Take().client);
  EXPECT_THAT(order, ElementsAre("a", "b", "a", "b"));
}

TEST(FairQueueTest, RemovesTasksThatWait) {
  FairQueue queue;
  std::vector<int> order;
  const int owners[4] = {};
  for (int i = 0; i < 4; ++i) {
    queue.Add(
        "a", [&order, i] { order.push_back(i); }, &owners[i]);
  }
  queue.Take().task();
  EXPECT_EQ(queue.Remove(&owners[0]), nullptr);  // already running
  EXPECT_NE(queue.Remove(&owners[2]), nullptr);
  EXPECT_EQ(queue.Remove(&owners[2]), nullptr);
  EXPECT_EQ(queue.waiting(), 2u);
  EXPECT_NE(queue.Remove(&owners[3]), nullptr);
  queue.Take().task();
  EXPECT_THAT(order, ElementsAre(0, 1));
  EXPECT_EQ(queue.waiting(), 0u);
}

TEST(FairQueueTest, PassesOverClientsWhoseTasksWereRemoved) {
  FairQueue queue;
  const int owner = 0;
  queue.Add(
      "a", [] {}, &owner);
  queue.Add("b", [] {});
  EXPECT_NE(queue.Remove(&owner), nullptr);
  EXPECT_EQ(queue.Take().client, "b");
  queue.Add(
      "a", [] {}, &owner);
  EXPECT_EQ(queue.Take().client, "a");
}

TEST(FairQueueTest, ServesAnyNumberOfClients) {
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
