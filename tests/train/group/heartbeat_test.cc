// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/heartbeat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "client/train/group/message_signer.h"
#include "client/train/group/rank_state.h"
#include "common/base/field_error.h"
#include "common/base/steady_time.h"
#include "tests/support/silent_listener.h"

namespace millrace::testing {
namespace {

std::string FirstLine(const absl::Status& status) {
  const auto message = status.message();
  return std::string(message.substr(0, message.find('\n')));
}

// The store of rank 0, and heartbeats with a short timeout.
class HeartbeatTest : public ::testing::Test {
 protected:
  HeartbeatTest() {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }

  GroupAddress Group(int rank, int world) const {
    GroupAddress group = {rank, world, "127.0.0.1", store_->getPort()};
    group.secret = secret_;
    return group;
  }
  std::unique_ptr<Heartbeat> Start(int rank, int world) {
    HeartbeatOptions options;
    options.interval = absl::Milliseconds(50);
    options.silence = absl::Seconds(2);
    options.grace = absl::Seconds(60);
    return Heartbeat::Start(Group(rank, world), options);
  }

  // What any process that reaches the store can read.
  std::string Overhear(const std::string& key) {
    return store_->get_to_str("millrace/" + key);
  }
  void Interfere(const std::string& key, const std::string& value) {
    store_->set("millrace/" + key,
                std::vector<uint8_t>(value.begin(), value.end()));
  }

  std::string secret_ = "sixteen bytes or more";

  c10::intrusive_ptr<c10d::TCPStore> store_;
};

TEST_F(HeartbeatTest, NamesTheRankThatFellSilent) {
  const auto zero = Start(0, 3);
  auto one = Start(1, 3);
  auto two = Start(2, 3);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  one.reset();
  const absl::Status loss = zero->WaitForLoss(absl::Seconds(30));
  EXPECT_EQ(loss.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(loss.message().find("rank 1"), absl::string_view::npos) << loss;
  EXPECT_FALSE(two->WaitForLoss(absl::Seconds(30)).ok());
}

TEST_F(HeartbeatTest, ARankThatHasNotStartedIsMissingNotLost) {
  const auto zero = Start(0, 3);
  const auto one = Start(1, 3);
  EXPECT_EQ(zero->WaitForAll(absl::Seconds(3)), std::vector<int>{2});
  EXPECT_TRUE(zero->status().ok()) << zero->status();
  const auto two = Start(2, 3);
  EXPECT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  EXPECT_TRUE(zero->status().ok()) << zero->status();
}

// A stopped rank 0 accepts connections and answers nothing.
TEST_F(HeartbeatTest, NamesRankZeroWhenItsStoreNeverAnswers) {
  const SilentListener store;
  HeartbeatOptions options;
  options.interval = absl::Milliseconds(50);
  options.silence = absl::Seconds(1);
  options.grace = absl::Seconds(60);
  const auto one = Heartbeat::Start({1, 2, "127.0.0.1", store.port()}, options);
  const absl::Status loss = one->WaitForLoss(absl::Seconds(30));
  EXPECT_EQ(loss.code(), absl::StatusCode::kUnavailable) << loss;
  EXPECT_NE(loss.message().find("rank 0"), absl::string_view::npos) << loss;
}

TEST_F(HeartbeatTest, PassesOnWhyARankFailed) {
  const auto zero = Start(0, 2);
  const auto one = Start(1, 2);
  one->Fail(absl::ResourceExhaustedError("the disk is full"));
  const absl::Status loss = zero->WaitForLoss(absl::Seconds(30));
  EXPECT_EQ(FirstLine(loss), "rank 1 failed: the disk is full");
  // A user who has lost a trainer should not be told to look at servers.
  EXPECT_EQ(ReasonOf(loss), "rank_lost");
}

TEST_F(HeartbeatTest, PassesOnARanksAdvice) {
  const auto zero = Start(0, 2);
  const auto one = Start(1, 2);
  one->Fail(absl::ResourceExhaustedError("the disk is full\nmake room"));
  EXPECT_EQ(zero->WaitForLoss(absl::Seconds(30)).message(),
            "rank 1 failed: the disk is full\nmake room");
}

// The program on each host must exit with the status of wrong usage.
TEST_F(HeartbeatTest, WrongUsageByOneRankIsReportedByAll) {
  const auto zero = Start(0, 3);
  const auto one = Start(1, 3);
  const auto two = Start(2, 3);
  ASSERT_TRUE(two->WaitForAll(absl::Seconds(30)).empty());
  zero->Fail(UsageError("--resume: no such file\nname one"));
  for (const auto* other : {&one, &two}) {
    EXPECT_EQ(
        (*other)->WaitForLoss(absl::Seconds(30)),
        UsageError("--resume: no such file (reported by rank 0)\nname one"));
  }
}

TEST_F(HeartbeatTest, WithoutASecretAFailureIsNeverWrongUsage) {
  secret_ = "";
  const auto zero = Start(0, 2);
  const auto one = Start(1, 2);
  ASSERT_TRUE(one->WaitForAll(absl::Seconds(30)).empty());
  zero->Fail(UsageError("--resume: no such file\nname one"));
  EXPECT_EQ(one->WaitForLoss(absl::Seconds(30)),
            WithReason(absl::UnavailableError(
                           "rank 0 failed: --resume: no such file\nname one"),
                       Reason{"rank_lost"}));
}

// Messages count only if a rank signed them in this run.
TEST_F(HeartbeatTest, IgnoresMessagesOfStrangers) {
  RankState failed;
  failed.beats = 1 << 20;
  failed.failure = UsageError("--lr: a stranger");
  const auto zero = Start(0, 2);
  const auto one = Start(1, 2);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  ASSERT_TRUE(one->WaitForAll(absl::Seconds(30)).empty());
  const std::string text = ToText(failed);
  for (const std::string& value :
       {text, std::string(), std::string(32, '\0') + text,
        MessageSigner("", "").Sign("rank/1", text),
        MessageSigner(secret_, "").Sign("rank/1", text),
        MessageSigner(secret_, "another run").Sign("rank/1", text),
        Overhear("rank/0")}) {
    Interfere("rank/1", value);
    Interfere("rank/0", value);
    Interfere("hello/1", value);
    Interfere("hello/0", value);
    EXPECT_TRUE(zero->WaitForLoss(absl::Milliseconds(300)).ok());
    EXPECT_TRUE(one->WaitForLoss(absl::Milliseconds(1)).ok());
  }
  // Nor do strangers prevent ranks from hearing each other.
  one->Fail(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_EQ(FirstLine(zero->WaitForLoss(absl::Seconds(30))),
            "rank 1 failed: the disk is full");
}

TEST_F(HeartbeatTest, ARepeatedMessageIsNotASignOfLife) {
  const auto zero = Start(0, 2);
  auto one = Start(1, 2);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  const std::string alive = Overhear("rank/1");
  one.reset();
  absl::Status loss;
  const SteadyTime end = SteadyNow() + absl::Seconds(30);
  while (loss.ok() && SteadyNow() < end) {
    Interfere("rank/1", alive);
    loss = zero->WaitForLoss(absl::Milliseconds(10));
  }
  EXPECT_EQ(FirstLine(loss), "rank 1 is lost: silent for 2s");
}

TEST_F(HeartbeatTest, DifferentSecretsAreReported) {
  const auto zero = Start(0, 2);
  secret_ = "";
  const auto one = Start(1, 2);
  EXPECT_EQ(FirstLine(zero->WaitForLoss(absl::Seconds(30))),
            "rank 1 has a different secret from this rank, or none");
  EXPECT_EQ(FirstLine(one->WaitForLoss(absl::Seconds(30))),
            "rank 0 has a secret, and this rank has none");
}

TEST_F(HeartbeatTest, AllRanksSignForTheSameRun) {
  const auto zero = Start(0, 2);
  const auto one = Start(1, 2);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  ASSERT_TRUE(one->WaitForAll(absl::Seconds(30)).empty());
  EXPECT_EQ(one->signer().Verify("key", zero->signer().Sign("key", "message")),
            "message");
}

// The main thread hangs in a collective operation.
TEST_F(HeartbeatTest, EndsAProcessThatDoesNotEndItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const SilentListener store;
        HeartbeatOptions options;
        options.interval = absl::Milliseconds(50);
        options.silence = absl::Milliseconds(300);
        options.grace = absl::Milliseconds(200);
        const auto one =
            Heartbeat::Start({1, 2, "127.0.0.1", store.port()}, options);
        pause();
      },
      ::testing::ExitedWithCode(1),
      "rank 0 is (lost|gone): its port 127.0.0.1");
}

// Otherwise the beats of the new process would pass for those of the rank that
// was lost.
TEST_F(HeartbeatTest, ARestartedRankEndsTheOldGroup) {
  const auto zero = Start(0, 3);
  auto one = Start(1, 3);
  const auto two = Start(2, 3);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  EXPECT_FALSE(one->group_is_old());
  one.reset();
  const auto again = Start(1, 3);
  EXPECT_FALSE(again->WaitForLoss(absl::Seconds(30)).ok());
  EXPECT_TRUE(again->group_is_old());
  for (const auto* other : {&zero, &two}) {
    EXPECT_EQ(FirstLine((*other)->WaitForLoss(absl::Seconds(30))),
              "rank 1 failed: it was started again");
    EXPECT_FALSE((*other)->group_is_old());
  }
}

TEST_F(HeartbeatTest, AFinishedRankIsNotLost) {
  const auto zero = Start(0, 2);
  {
    const auto one = Start(1, 2);
    one->Finish();
  }
  zero->WaitForOthers(absl::Seconds(30));
  EXPECT_TRUE(zero->WaitForLoss(absl::Seconds(3)).ok());
}

// The whole job was stopped for an hour: every clock jumps, but no rank is
// lost.
TEST_F(HeartbeatTest, BlamesNoRankForItsOwnSleep) {
  std::atomic<int> hours = 0;
  HeartbeatOptions options;
  options.interval = absl::Milliseconds(50);
  options.silence = absl::Seconds(2);
  options.grace = absl::Seconds(60);
  options.now = [&hours] { return SteadyNow() + absl::Hours(hours.load()); };
  const auto zero = Heartbeat::Start(Group(0, 2), options);
  auto one = Start(1, 2);
  ASSERT_TRUE(zero->WaitForLoss(absl::Milliseconds(200)).ok());
  ++hours;
  EXPECT_TRUE(zero->WaitForLoss(absl::Seconds(1)).ok());
  // Afterwards a rank that falls silent is noticed as usual.
  one.reset();
  const absl::Status loss = zero->WaitForLoss(absl::Seconds(30));
  EXPECT_NE(loss.message().find("rank 1"), absl::string_view::npos) << loss;
}

// How long rank 0 waited, at most `timeout`, for the others.
absl::Duration WaitedForOthers(const Heartbeat& zero, absl::Duration timeout) {
  const SteadyTime start = SteadyNow();
  zero.WaitForOthers(timeout);
  return SteadyNow() - start;
}

constexpr absl::Duration kLong = absl::Seconds(60);

TEST_F(HeartbeatTest, WaitsForOthersThatHaveNotEnded) {
  const auto zero = Start(0, 3);
  const auto one = Start(1, 3);
  const auto two = Start(2, 3);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  const absl::Duration timeout = absl::Milliseconds(200);
  EXPECT_GE(WaitedForOthers(*zero, timeout), timeout);
  one->Finish();
  EXPECT_GE(WaitedForOthers(*zero, timeout), timeout);
  two->Finish();
  EXPECT_LT(WaitedForOthers(*zero, kLong), kLong / 2);
}

TEST_F(HeartbeatTest, WaitsForNobodyWhoNeverCame) {
  const auto zero = Start(0, 2);
  EXPECT_LT(WaitedForOthers(*zero, kLong), kLong / 2);
}

TEST_F(HeartbeatTest, ARankThatFailedHasEnded) {
  const auto zero = Start(0, 2);
  const auto one = Start(1, 2);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  one->Fail(absl::ResourceExhaustedError("the disk is full"));
  EXPECT_LT(WaitedForOthers(*zero, kLong), kLong / 2);
}

// The first failure is the reason of all that follow.
TEST_F(HeartbeatTest, KeepsTheFirstLoss) {
  const auto zero = Start(0, 3);
  const auto one = Start(1, 3);
  const auto two = Start(2, 3);
  ASSERT_TRUE(zero->WaitForAll(absl::Seconds(30)).empty());
  one->Fail(absl::ResourceExhaustedError("the disk is full"));
  ASSERT_FALSE(zero->WaitForLoss(absl::Seconds(30)).ok());
  two->Fail(UsageError("--lr: too much"));
  EXPECT_LT(WaitedForOthers(*zero, kLong), kLong / 2);
  EXPECT_EQ(FirstLine(zero->status()), "rank 1 failed: the disk is full");
}

TEST_F(HeartbeatTest, NamesRankZeroWhenItsStoreIsGone) {
  const auto one = Start(1, 2);
  store_.reset();
  const absl::Status loss = one->WaitForLoss(absl::Seconds(30));
  EXPECT_NE(loss.message().find("rank 0"), absl::string_view::npos) << loss;
}

}  // namespace
}  // namespace millrace::testing
