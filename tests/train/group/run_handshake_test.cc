// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/run_handshake.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "common/base/field_error.h"

namespace millrace::testing {
namespace {

constexpr char kGroupSecret[] = "sixteen bytes or more";
constexpr int kWorld = 2;
const std::vector<bool> kNoneJoined(kWorld, false);

c10::intrusive_ptr<c10d::TCPStore> NewStore() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

class RunHandshakeTest : public ::testing::Test {
 protected:
  RunHandshake Of(int rank, const std::string& secret = kGroupSecret) {
    return OfStore(store_, rank, secret);
  }
  static RunHandshake OfStore(c10::intrusive_ptr<c10d::TCPStore> store,
                              int rank, const std::string& secret) {
    GroupAddress group;
    group.rank = rank;
    group.world = kWorld;
    group.secret = secret;
    return RunHandshake(group, std::move(store));
  }

  std::string Raw(const std::string& key) {
    return store_->get_to_str("millrace/" + key);
  }
  void SetRaw(const std::string& key, const std::string& value) {
    store_->set("millrace/" + key,
                std::vector<uint8_t>(value.begin(), value.end()));
  }

  const c10::intrusive_ptr<c10d::TCPStore> store_ = NewStore();
};

TEST_F(RunHandshakeTest, AllGetTheIdThatRankZeroDrew) {
  RunHandshake zero = Of(0);
  RunHandshake one = Of(1);
  EXPECT_FALSE(one.AskRankZero());
  EXPECT_EQ(one.run(), "");
  zero.AnswerRanks(kNoneJoined);
  EXPECT_TRUE(one.AskRankZero());
  EXPECT_FALSE(zero.run().empty());
  EXPECT_EQ(one.run(), zero.run());
  EXPECT_FALSE(one.restarted());
  EXPECT_NE(Of(0).run(), zero.run());
}

// The answer was to an earlier process.
TEST_F(RunHandshakeTest, IgnoresAReplayedAnswer) {
  RunHandshake zero = Of(0);
  {
    RunHandshake earlier = Of(1);
    EXPECT_FALSE(earlier.AskRankZero());
    zero.AnswerRanks(kNoneJoined);
    EXPECT_TRUE(earlier.AskRankZero());
  }
  const std::string overheard = Raw("welcome/1");
  RunHandshake one = Of(1);
  SetRaw("welcome/1", overheard);
  EXPECT_FALSE(one.AskRankZero());
  zero.AnswerRanks(kNoneJoined);
  EXPECT_TRUE(one.AskRankZero());
}

TEST_F(RunHandshakeTest, AStrangersValuesBlockNoRank) {
  RunHandshake zero = Of(0);
  RunHandshake one = Of(1);
  EXPECT_FALSE(one.AskRankZero());
  SetRaw("hello/1", "a stranger");
  zero.AnswerRanks(kNoneJoined);
  EXPECT_FALSE(one.AskRankZero());
  zero.AnswerRanks(kNoneJoined);
  SetRaw("welcome/1", "a stranger");
  SetRaw("hello/0", "a stranger");
  EXPECT_FALSE(one.AskRankZero());
  zero.AnswerRanks(kNoneJoined);
  EXPECT_TRUE(one.AskRankZero());
  EXPECT_EQ(one.run(), zero.run());
  EXPECT_TRUE(zero.mismatch().ok()) << zero.mismatch();
  EXPECT_TRUE(one.mismatch().ok()) << one.mismatch();
}

TEST_F(RunHandshakeTest, TellsARankThatItWasRestarted) {
  RunHandshake zero = Of(0);
  RunHandshake one = Of(1);
  EXPECT_FALSE(one.AskRankZero());
  zero.AnswerRanks(kNoneJoined);
  EXPECT_TRUE(one.AskRankZero());
  const std::vector<bool> joined = {false, true};
  zero.AnswerRanks(joined);
  // The question of the first process is still there.
  EXPECT_TRUE(one.AskRankZero());
  EXPECT_FALSE(one.restarted());
  RunHandshake again = Of(1);
  EXPECT_FALSE(again.AskRankZero());
  zero.AnswerRanks(joined);
  EXPECT_TRUE(again.AskRankZero());
  EXPECT_TRUE(again.restarted());
  EXPECT_EQ(again.run(), zero.run());
}

// What a rank with the secret `own` reports about another.
absl::Status OtherSecret(int other, const std::string& own) {
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "rank ", other,
          own.empty() ? " has a secret, and this rank has none"
                      : " has a different secret from this rank, or none")),
      Reason{"other_secret"});
}

TEST_F(RunHandshakeTest, NamesARankWithAnotherSecret) {
  struct Group {
    Group(const std::string& first, const std::string& second)
        : secrets{first, second},
          zero(OfStore(store, 0, first)),
          one(OfStore(store, 1, second)) {}
    const std::string secrets[kWorld];
    const c10::intrusive_ptr<c10d::TCPStore> store = NewStore();
    RunHandshake zero, one;
  };
  Group groups[] = {
      {"", kGroupSecret}, {kGroupSecret, ""}, {kGroupSecret, "another secret"}};
  // The handshake takes a few seconds before it is certain.
  for (Group& group : groups) {
    while (group.zero.mismatch().ok() || group.one.mismatch().ok()) {
      for (Group& each : groups) {
        each.zero.AnswerRanks(kNoneJoined);
        EXPECT_FALSE(each.one.AskRankZero());
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(group.zero.mismatch(), OtherSecret(1, group.secrets[0]));
    EXPECT_EQ(group.one.mismatch(), OtherSecret(0, group.secrets[1]));
  }
}

// A rank with another secret would write such a value again.
TEST_F(RunHandshakeTest, OneValueThatIsNotSignedIsOnlySuspicious) {
  RunHandshake zero = Of(0);
  SetRaw("hello/1", "a stranger");
  for (int i = 0; i < 100; ++i) zero.AnswerRanks(kNoneJoined);
  EXPECT_TRUE(zero.mismatch().ok()) << zero.mismatch();
  EXPECT_EQ(zero.suspected_mismatch().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace millrace::testing
