// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/collectives.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/train/group/rendezvous.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "tests/support/free_port.h"
#include "tests/support/silent_listener.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

// Nothing listens there.
const GroupAddress kNowhere = {1, 2, "127.0.0.1", 1};

TEST(CollectivesTest, SaysWhereItWaitedForRankZero) {
  CollectiveOptions options;
  options.meet_timeout = absl::Milliseconds(300);
  const absl::Status status = Collectives::Connect(kNowhere, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(" for rank 0 at 127.0.0.1:1: "),
            absl::string_view::npos)
      << status;
}

TEST(CollectivesTest, RankZeroNamesAPortThatIsTaken) {
  c10d::TCPStoreOptions taken;
  taken.port = 0;
  taken.isServer = true;
  taken.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", taken);
  const absl::Status status =
      Collectives::Connect({0, 2, "127.0.0.1", store->getPort()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(StrCat("127.0.0.1:", store->getPort())),
            absl::string_view::npos)
      << status;
}

// Options for heartbeats with a short timeout.
CollectiveOptions Impatient() {
  CollectiveOptions options;
  options.heartbeat.interval = absl::Milliseconds(50);
  options.heartbeat.silence = absl::Seconds(2);
  return options;
}

TEST(CollectivesTest, NamesTheRanksThatDidNotJoin) {
  CollectiveOptions options = Impatient();
  options.start_timeout = absl::Milliseconds(200);
  const absl::Status status =
      Collectives::Connect({0, 3, "127.0.0.1", FreePort()}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_NE(status.message().find("ranks 1, 2 of 3 did not join within 200ms"),
            absl::string_view::npos)
      << status;
}

// Rank 1 joins and dies; rank 2 never joins while the others wait.
TEST(CollectivesTest, NamesTheRankThatDiedBeforeAllJoined) {
  const uint16_t port = FreePort();
  absl::Status status;
  std::thread zero([&status, port] {
    status =
        Collectives::Connect({0, 3, "127.0.0.1", port}, Impatient()).status();
  });
  const GroupAddress group = {1, 3, "127.0.0.1", port};
  ASSERT_TRUE(FindMeetingPoint(group, absl::Seconds(30)).ok());
  {
    const auto one = Heartbeat::Start(group);
    while (one->WaitForAll(absl::Milliseconds(10)) != std::vector<int>{2}) {
      ASSERT_TRUE(one->status().ok()) << one->status();
    }
  }
  zero.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("rank 1 is lost"), absl::string_view::npos)
      << status;
}

// Connects all ranks of a group, each on a thread, and sums their numbers.
std::vector<absl::StatusOr<float>> AddUpRanks(GroupAddress group) {
  std::vector<absl::StatusOr<float>> sums(group.world,
                                          absl::UnknownError("not run"));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < group.world; ++rank) {
    ranks.emplace_back([group, rank, &sum = sums[rank]]() mutable {
      group.rank = rank;
      sum = [&]() -> absl::StatusOr<float> {
        MILLRACE_ASSIGN_OR_RETURN(const auto collectives,
                                  Collectives::Connect(group));
        const at::Tensor number = at::full({1}, rank + 1.0f);
        MILLRACE_RETURN_IF_ERROR(collectives->AllReduceSum(number));
        MILLRACE_RETURN_IF_ERROR(collectives->Finish());
        return number.item().toFloat();
      }();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return sums;
}

TEST(CollectivesTest, SumsOverRanks) {
  for (const char* secret : {"", "sixteen bytes or more"}) {
    GroupAddress group = {0, 3, "localhost", FreePort()};
    group.secret = secret;
    for (const auto& sum : AddUpRanks(group)) {
      ASSERT_TRUE(sum.ok()) << sum.status();
      EXPECT_EQ(*sum, 6);
    }
  }
}

// torchrun itself listens at the group's address, until it starts another group
// there.
TEST(CollectivesTest, RanksMeetAtTheStoreOfTorchrun) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  GroupAddress group = {0, 2, "127.0.0.1", agent->getPort()};
  group.agent_listens = true;
  for (int start = 0; start < 2; ++start) {
    for (const auto& sum : AddUpRanks(group)) {
      ASSERT_TRUE(sum.ok()) << sum.status();
      EXPECT_EQ(*sum, 3);
    }
  }
}

TEST(CollectivesTest, AGroupOfOneTalksToItself) {
  const auto alone = Collectives::Connect({}).value();
  EXPECT_EQ(alone->world(), 1);
  const at::Tensor number = at::full({2}, 7.0f);
  EXPECT_TRUE(alone->AllReduceSum(number).ok());
  EXPECT_TRUE(alone->Broadcast(number, 0).ok());
  EXPECT_TRUE(number.equal(at::full({2}, 7.0f)));
  EXPECT_TRUE(alone->GatherRows(number)->equal(at::full({1, 2}, 7.0f)));
  EXPECT_EQ(alone->GatherBytes("ab").value(), std::vector<std::string>{"ab"});
  EXPECT_EQ(alone->ShareBytes("ab").value(), "ab");
  EXPECT_TRUE(alone->ShareAnswer(true).value());
  EXPECT_FALSE(alone->ShareAnswer(false).value());
  EXPECT_TRUE(alone->Barrier().ok());
  EXPECT_TRUE(alone->Finish().ok());
}

// A sum of floats would turn -0 into 0.
TEST(CollectivesTest, EveryRankGetsTheRowsOfAll) {
  const at::Tensor numbers = at::tensor({5, -1, 1 << 20}, at::kLong);
  const at::Tensor floats = at::tensor({1.5, -0.0, 0.25, 1e30}, at::kFloat);
  RunRanks(3, [&](Collectives& collectives) {
    const int rank = collectives.rank();
    EXPECT_TRUE(collectives.GatherRows(numbers[rank])->equal(numbers));
    // The columns of a matrix are not contiguous.
    const at::Tensor own = floats.view({2, 2}).mul(rank - 1).t();
    const at::Tensor rows = collectives.GatherRows(own).value();
    ASSERT_EQ(rows.sizes(), at::IntArrayRef({3, 2, 2}));
    for (int r = 0; r < 3; ++r) {
      const at::Tensor want = floats.view({2, 2}).mul(r - 1).t();
      EXPECT_TRUE(
          rows[r].view(at::kInt).equal(want.contiguous().view(at::kInt)));
    }
    EXPECT_EQ(collectives.GatherRows(at::zeros({0, 2}))->sizes(),
              at::IntArrayRef({3, 0, 2}));
  });
}

TEST(CollectivesTest, EveryRankGetsTheBytesOfAll) {
  RunRanks(3, [](Collectives& collectives) {
    const std::vector<std::string> all = {"", std::string("a\0b", 3),
                                          std::string(100'000, 'c')};
    EXPECT_EQ(collectives.GatherBytes(all[collectives.rank()]).value(), all);
    EXPECT_EQ(collectives.GatherBytes("").value(), std::vector<std::string>(3));
  });
}

TEST(CollectivesTest, EveryRankGetsWhatRankZeroShares) {
  RunRanks(3, [](Collectives& collectives) {
    const int rank = collectives.rank();
    for (const size_t size : {size_t{0}, size_t{1}, size_t{100'000}}) {
      const std::string bytes(size, 'a');
      // The others' bytes, of any length, do not matter.
      EXPECT_EQ(collectives.ShareBytes(rank == 0 ? bytes : "others").value(),
                bytes);
    }
    for (const bool answer : {true, false}) {
      EXPECT_EQ(collectives.ShareAnswer(rank == 0 ? answer : !answer).value(),
                answer);
    }
  });
}

TEST(CollectivesTest, AnyRankMayBroadcast) {
  RunRanks(3, [](Collectives& collectives) {
    for (int root = 0; root < 3; ++root) {
      const at::Tensor numbers =
          at::full({4}, 10.0f * static_cast<float>(collectives.rank()));
      ASSERT_TRUE(collectives.Broadcast(numbers, root).ok());
      EXPECT_TRUE(
          numbers.equal(at::full({4}, 10.0f * static_cast<float>(root))));
    }
  });
}

TEST(CollectivesTest, FinishingTwiceIsFinishingOnce) {
  RunRanks(2, [](Collectives& collectives) {
    EXPECT_TRUE(collectives.Finish().ok());
    // A rank that has finished does not fail any more.
    collectives.Fail(absl::InternalError("too late"));
    EXPECT_TRUE(collectives.Finish().ok());
  });
}

// Waits until something tries to connect to a port of this host that does not
// answer.
void AwaitAttempt(uint16_t port) {
  const std::string remote = absl::StrFormat("0100007F:%04X", port);
  while (true) {
    std::ifstream sockets("/proc/self/net/tcp");
    std::string line;
    while (std::getline(sockets, line)) {
      std::istringstream words(line);
      std::string number, local, peer, state;
      words >> number >> local >> peer >> state;
      if (peer == remote && state == "02") return;  // SYN_SENT
    }
  }
}

// Sends SIGINT while it tries to reach the store, whose queue of connections is
// full.
void ConnectAndInterrupt() {
  InstallInterruptHandler();
  const SilentListener store(/*backlog=*/0);
  const UniqueFd first = store.Connect();
  std::thread interrupt([&store] {
    AwaitAttempt(store.port());
    raise(SIGINT);
  });
  CollectiveOptions options;
  options.meet_timeout = absl::Hours(1);
  const absl::Status status =
      Collectives::Connect({1, 2, "127.0.0.1", store.port()}, options).status();
  interrupt.join();
  std::_Exit(absl::IsCancelled(status) ? 0 : 1);
}

TEST(CollectivesDeathTest, InterruptEndsTheWaitForTheStore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ConnectAndInterrupt(), ::testing::ExitedWithCode(0), "");
}

// Rank 0 is stopped: its kernel accepts the connection, but nothing answers.
TEST(CollectivesTest, NamesARankZeroThatNeverAnswers) {
  const SilentListener store;
  const absl::Status status =
      Collectives::Connect({1, 2, "127.0.0.1", store.port()}, Impatient())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(status.message().find("rank 0 is lost: its port 127.0.0.1:") ==
                  0 ||
              status.message().find("rank 0 is gone: its port 127.0.0.1:") == 0)
      << status;
}

// Rank 0 and rank 1 wait for rank 2, rank 1 not for long.
TEST(CollectivesTest, TellsTheOthersWhyItDidNotJoin) {
  const uint16_t port = FreePort();
  absl::Status zero;
  std::thread other([&zero, port] {
    zero =
        Collectives::Connect({0, 3, "127.0.0.1", port}, Impatient()).status();
  });
  CollectiveOptions options = Impatient();
  options.start_timeout = absl::Seconds(3);  // enough for rank 0 to join
  const absl::Status one =
      Collectives::Connect({1, 3, "127.0.0.1", port}, options).status();
  other.join();
  EXPECT_EQ(one.code(), absl::StatusCode::kDeadlineExceeded) << one;
  EXPECT_EQ(one.message().find("rank 2 of 3 did not join within 3s"), 0u)
      << one;
  EXPECT_EQ(zero.code(), absl::StatusCode::kUnavailable) << zero;
  EXPECT_EQ(
      zero.message().find("rank 1 failed: rank 2 of 3 did not join within 3s"),
      0u)
      << zero;
}

// The connection breaks before the heartbeat says why.
TEST(CollectivesTest, NamesTheRankThatFailedDuringACall) {
  const uint16_t port = FreePort();
  std::thread other([port] {
    const auto one = Collectives::Connect({1, 2, "127.0.0.1", port});
    ASSERT_TRUE(one.ok()) << one.status();
    // Rank 0 is connected too.
    EXPECT_TRUE((*one)->Barrier().ok());
    (*one)->Fail(absl::ResourceExhaustedError("the disk is full"));
  });
  const auto zero = Collectives::Connect({0, 2, "127.0.0.1", port});
  absl::Status status = zero.status();
  for (int i = 0; i < 2 && status.ok(); ++i) status = (*zero)->Barrier();
  other.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message(), "rank 1 failed: the disk is full");
}

}  // namespace
}  // namespace millrace::testing
