// SPDX-License-Identifier: Apache-2.0
// How a Fleet reacts to its members' answers, without gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/base/thread_pool.h"
#include "common/grpc/fleet/fleet.h"
#include "common/wire/manifest_proto.h"
#include "sampler.pb.h"
#include "tests/support/captured_log.h"
#include "tests/support/eventually.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using State = FleetMemberInfo::State;

constexpr int kParts = 2;

SteadyTime Soon() { return SteadyNow() + absl::Seconds(20); }

v1::DescribeReply Serving(const std::vector<int>& partitions,
                          const std::string& fingerprint = "abc") {
  Manifest manifest;
  manifest.fingerprint = fingerprint;
  manifest.schema.node_types = {NodeType{.name = "node", .count = 4}};
  manifest.books = {PartitionBook({0, 2, 4})};
  v1::DescribeReply reply;
  ManifestToProto(manifest, reply);
  reply.set_protocol_version(kProtocolVersion);
  reply.set_parts(kParts);
  for (const int partition : partitions) {
    reply.add_partitions(static_cast<uint32_t>(partition));
  }
  return reply;
}

// Members that answer as a test tells them to, from a thread of their own.
class FakeMembers {
 public:
  // The reply, an error, or nothing: then the call stays open until it is
  // cancelled.
  using Answer = std::optional<absl::StatusOr<v1::DescribeReply>>;

  void Set(const std::string& address, Answer answer) {
    MutexLock lock(&mutex_);
    answers_[address] = std::move(answer);
  }
  Answer For(const std::string& address, bool reconnect) {
    MutexLock lock(&mutex_);
    ++calls_[address];
    if (reconnect) ++reconnects_;
    changed_.NotifyAll();
    return answers_.at(address);
  }
  void NoteCancelled() {
    MutexLock lock(&mutex_);
    ++cancelled_;
  }
  // From now on, cancelled calls end before Cancel() returns.
  void EndWithinCancel() {
    MutexLock lock(&mutex_);
    end_within_cancel_ = true;
  }
  bool end_within_cancel() const {
    MutexLock lock(&mutex_);
    return end_within_cancel_;
  }

  // How many times a member has been asked.
  int calls(const std::string& address) const {
    MutexLock lock(&mutex_);
    const auto known = calls_.find(address);
    return known == calls_.end() ? 0 : known->second;
  }
  int cancelled() const {
    MutexLock lock(&mutex_);
    return cancelled_;
  }
  // How many of all calls were to connect at once.
  int reconnects() const {
    MutexLock lock(&mutex_);
    return reconnects_;
  }
  // Waits until a member has been asked `calls` times.
  bool AwaitCalls(const std::string& address, int calls) const {
    MutexLock lock(&mutex_);
    return changed_.WaitUntil(
        &mutex_, Soon(), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          const auto known = calls_.find(address);
          return known != calls_.end() && known->second >= calls;
        });
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::map<std::string, Answer> answers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  int cancelled_ ABSL_GUARDED_BY(mutex_) = 0;
  bool end_within_cancel_ ABSL_GUARDED_BY(mutex_) = false;
  int reconnects_ ABSL_GUARDED_BY(mutex_) = 0;
};

class FakeCall final : public DescribeCall {
 public:
  FakeCall(std::string address, FakeMembers& members, ThreadPool& pool)
      : address_(std::move(address)), members_(members), pool_(pool) {}

  void Start(const Options& options, Done done) override {
    // A call that Cancel() ends meanwhile may be gone before this returns.
    const std::shared_ptr<State> state = state_;
    ThreadPool& pool = pool_;
    FakeMembers::Answer answer = members_.For(address_, options.reconnect);
    {
      MutexLock lock(&state->mutex);
      state->done = std::move(done);
      if (!answer.has_value() && !state->cancelled) return;
    }
    if (!answer.has_value()) answer = absl::CancelledError("before the start");
    End(state, *std::move(answer), pool);
  }

  void Cancel() override {
    {
      MutexLock lock(&state_->mutex);
      state_->cancelled = true;
    }
    members_.NoteCancelled();
    const absl::Status cancelled = absl::CancelledError("by the fleet");
    if (members_.end_within_cancel()) {
      Finish(*state_, cancelled);
    } else {
      End(state_, cancelled, pool_);
    }
  }

 private:
  // Must outlive the call, whose callback may end it.
  struct State {
    Mutex mutex;
    Done done ABSL_GUARDED_BY(mutex);
    bool cancelled ABSL_GUARDED_BY(mutex) = false;
  };

  static void End(const std::shared_ptr<State>& state,
                  absl::StatusOr<v1::DescribeReply> answer, ThreadPool& pool) {
    EXPECT_TRUE(pool.TrySubmit(
        [state, answer = std::move(answer)] { Finish(*state, answer); }));
  }

  static void Finish(State& state,
                     const absl::StatusOr<v1::DescribeReply>& answer) {
    Done done;
    {
      MutexLock lock(&state.mutex);
      done = std::exchange(state.done, nullptr);
    }
    if (done == nullptr) return;
    done(answer.status(), answer.ok() ? *answer : v1::DescribeReply());
  }

  const std::string address_;
  FakeMembers& members_;
  ThreadPool& pool_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

class FakeTransport final : public FleetTransport {
 public:
  FakeTransport(FakeMembers& members, ThreadPool& pool)
      : members_(members), pool_(pool) {}
  void Connect(FleetMember& /*member*/) const override {}
  std::unique_ptr<DescribeCall> NewDescribeCall(
      std::shared_ptr<FleetMember> member) const override {
    return std::make_unique<FakeCall>(member->address, members_, pool_);
  }

 private:
  FakeMembers& members_;
  ThreadPool& pool_;
};

class FleetStatesTest : public ::testing::Test {
 protected:
  // A fleet of host1:1, host2:1, ...
  void Start(int members, FleetOptions options = {}) {
    for (int i = 1; i <= members; ++i) {
      absl::StrAppend(&options.list, i > 1 ? "," : "", "host", i, ":1");
    }
    auto fleet = Fleet::Create(
        options, std::make_unique<FakeTransport>(members_, pool_));
    ASSERT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
  }
  // Waits until the first member is in `state`.
  bool AwaitState(State state) const {
    const auto members = fleet_->AwaitMembers(
        [state](const auto& infos) {
          return !infos.empty() && infos[0].state == state;
        },
        Soon());
    return members.ok() && members->at(0).state == state;
  }

  ThreadPool pool_{"members", /*threads=*/2, /*capacity=*/10'000};
  FakeMembers members_;
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(FleetStatesTest, PicksTheOwner) {
  members_.Set("host1:1", Serving({0}));
  members_.Set("host2:1", Serving({1}));
  Start(2);
  const auto manifest = fleet_->WaitForManifest(Soon());
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ((*manifest)->fingerprint, "abc");
  for (const int part : {0, 1}) {
    const auto member = fleet_->Pick(part, Soon());
    ASSERT_TRUE(member.ok()) << member.status();
    EXPECT_EQ((*member)->address, absl::StrCat("host", part + 1, ":1"));
  }
}

TEST_F(FleetStatesTest, FollowsAMemberThatComesBack) {
  members_.Set("host1:1", absl::UnavailableError("connection refused"));
  FleetOptions options;
  options.retry_interval = absl::Milliseconds(1);
  options.ready_interval = absl::Milliseconds(1);
  Start(1, options);
  EXPECT_TRUE(AwaitState(State::kUnreachable));
  const absl::Status status =
      fleet_->Pick(0, SteadyTime::InfinitePast()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"));
  members_.Set("host1:1", Serving({0, 1}));
  EXPECT_TRUE(fleet_->Pick(1, Soon()).ok());
  v1::DescribeReply draining = Serving({0, 1});
  draining.set_draining(true);
  members_.Set("host1:1", draining);
  EXPECT_TRUE(AwaitState(State::kDraining));
  members_.Set("host1:1", Serving({0}, "def"));
  EXPECT_TRUE(AwaitState(State::kRefused));
}

TEST_F(FleetStatesTest, LogsWhichMembersAreLostAndComeBack) {
  const testing::CapturedLog log;
  // A change is logged after it can be seen.
  const auto await_lines = [&log](int count) {
    return testing::Eventually([&] {
      const std::string text = log.text();
      return std::count(text.begin(), text.end(), '\n') >= count;
    });
  };
  FleetOptions options;
  options.retry_interval = absl::Milliseconds(1);
  options.ready_interval = absl::Milliseconds(1);
  members_.Set("host1:1", Serving({0, 1}));
  Start(1, options);
  ASSERT_TRUE(AwaitState(State::kReady));
  const absl::Status lost = absl::UnavailableError("no route\nfind one");
  members_.Set("host1:1", lost);
  EXPECT_TRUE(await_lines(1));
  members_.Set("host1:1", Serving({0, 1}));
  EXPECT_TRUE(await_lines(2));
  // That a call has failed says nothing yet: the member is asked again.
  const int calls = members_.calls("host1:1");
  {
    const auto member = fleet_->Pick(0, Soon());
    ASSERT_TRUE(member.ok()) << member.status();
    fleet_->ReportFailure(**member, lost);
  }
  EXPECT_TRUE(members_.AwaitCalls("host1:1", calls + 2));
  EXPECT_TRUE(AwaitState(State::kReady));
  members_.Set("host1:1", Serving({0, 1}, "def"));
  EXPECT_TRUE(await_lines(3));
  fleet_.reset();
  pool_.Close();  // nobody logs any more
  EXPECT_THAT(
      log.text(),
      MatchesRegex(
          "[^\n]* server unreachable; find one server=host1:1 partitions=0,1 "
          "error=\"no route\"\n"
          "[^\n]* server ready server=host1:1 partitions=0,1\n"
          "[^\n]*\\[warning\\] server refused; [^\n]* server=host1:1 "
          "partitions=0,1 error=\"[^\n]*another store[^\n]*\n"));
}

// It would otherwise be asked again only after the interval.
TEST_F(FleetStatesTest, AsksAgainForTheManifest) {
  members_.Set("host1:1", absl::UnavailableError("connection refused"));
  FleetOptions options;
  options.retry_interval = absl::Hours(1);
  Start(1, options);
  ASSERT_TRUE(AwaitState(State::kUnreachable));
  members_.Set("host1:1", Serving({0, 1}));
  const auto manifest = fleet_->WaitForManifest(Soon());
  EXPECT_TRUE(manifest.ok()) << manifest.status();
}

// gRPC's own pauses between attempts grow to minutes.
TEST_F(FleetStatesTest, ConnectsToLostMembersOnceASecond) {
  members_.Set("host1:1", absl::UnavailableError("connection refused"));
  FleetOptions options;
  options.retry_interval = absl::Milliseconds(1);
  const SteadyTime start = SteadyNow();
  Start(1, options);
  ASSERT_TRUE(members_.AwaitCalls("host1:1", 1));
  EXPECT_GE(members_.reconnects(), 1);
  while (members_.reconnects() < 2 && SteadyNow() < start + absl::Seconds(20)) {
    ASSERT_TRUE(members_.AwaitCalls("host1:1", members_.calls("host1:1") + 1));
  }
  const int reconnects = members_.reconnects();
  EXPECT_GE(reconnects, 2);
  EXPECT_GE(SteadyNow() - start, absl::Seconds(reconnects - 1));
}

TEST(FleetMemberTest, StatesHaveNames) {
  EXPECT_EQ(StateName(State::kUnknown), "unknown");
  EXPECT_EQ(StateName(State::kReady), "ready");
  EXPECT_EQ(StateName(State::kDraining), "draining");
  EXPECT_EQ(StateName(State::kUnreachable), "unreachable");
  EXPECT_EQ(StateName(State::kRefused), "refused");
}

TEST_F(FleetStatesTest, ClearsAMembersEarlierError) {
  FleetOptions options;
  options.ready_interval = absl::Milliseconds(1);
  members_.Set("host1:1", Serving({0, 1}));
  Start(1, options);
  ASSERT_TRUE(fleet_->WaitForManifest(Soon()).ok());
  v1::DescribeReply damaged = Serving({0});
  v1::DescribeReply::Damage& damage = *damaged.add_damage();
  damage.set_partition(1);
  damage.set_what("torn");
  const auto await = [this](const auto& condition) {
    const auto members = fleet_->AwaitMembers(
        [&](const auto& infos) { return condition(infos.at(0)); }, Soon());
    return members.ok() && condition(members->at(0));
  };
  members_.Set("host1:1", damaged);
  EXPECT_TRUE(await([](const auto& info) {
    return info.damaged == std::map<int, std::string>{{1, "torn"}};
  }));
  members_.Set("host1:1", Serving({0, 1}, "def"));
  EXPECT_TRUE(await([](const auto& info) {
    return info.other_store && info.state == State::kRefused;
  }));
  members_.Set("host1:1", Serving({0, 1}));
  EXPECT_TRUE(await([](const auto& info) {
    return info.state == State::kReady && !info.other_store &&
           info.damaged.empty();
  }));
}

TEST_F(FleetStatesTest, SilentMemberIsLostAfterTheTimeout) {
  members_.Set("host1:1", std::nullopt);
  FleetOptions options;
  options.describe_timeout = absl::Milliseconds(20);
  Start(1, options);
  EXPECT_TRUE(AwaitState(State::kUnreachable));
  EXPECT_GE(members_.cancelled(), 1);
  EXPECT_EQ(absl::StatusCode::kDeadlineExceeded,
            fleet_->Members()[0].error.code());
}

// A call with the long timeout is in flight when a member is suspected.
TEST_F(FleetStatesTest, SuspectIsAskedAgainAtOnce) {
  members_.Set("host1:1", Serving({0, 1}));
  FleetOptions options;
  options.describe_timeout = absl::Hours(1);
  options.suspect_timeout = absl::Milliseconds(20);
  options.recent_answer = absl::ZeroDuration();
  options.retry_interval = absl::Hours(1);
  Start(1, options);
  const auto member = fleet_->Pick(0, Soon());
  ASSERT_TRUE(member.ok()) << member.status();
  members_.Set("host1:1", std::nullopt);
  fleet_->ReportFailure(**member, absl::UnavailableError("connection lost"));
  ASSERT_TRUE(members_.AwaitCalls("host1:1", 2));
  EXPECT_FALSE(fleet_->IsLost(**member));
  fleet_->Suspect(**member);
  EXPECT_TRUE(AwaitState(State::kUnreachable));
  EXPECT_TRUE(fleet_->IsLost(**member));
  EXPECT_EQ(members_.calls("host1:1"), 3);
}

// The answer was sent before the failure was reported.
TEST_F(FleetStatesTest, MembersThatFailWhileTheyAreAskedAreAskedAgain) {
  members_.Set("host1:1", Serving({0, 1}));
  FleetOptions options;
  options.ready_interval = absl::Hours(1);
  options.retry_interval = absl::Hours(1);
  Start(1, options);
  const auto member = fleet_->Pick(0, Soon());
  ASSERT_TRUE(member.ok()) << member.status();
  // While both threads are busy, no answer reaches the fleet. One of them may
  // still be when this test ends.
  const auto busy_ends = std::make_shared<Notification>();
  for (int thread = 0; thread < 2; ++thread) {
    ASSERT_TRUE(
        pool_.TrySubmit([busy_ends] { busy_ends->WaitForNotification(); }));
  }
  const absl::Status lost = absl::UnavailableError("connection lost");
  fleet_->ReportFailure(**member, lost);
  EXPECT_TRUE(members_.AwaitCalls("host1:1", 2));
  members_.Set("host1:1", lost);
  fleet_->ReportFailure(**member, lost);
  busy_ends->Notify();
  EXPECT_TRUE(members_.AwaitCalls("host1:1", 3));
  EXPECT_TRUE(AwaitState(State::kUnreachable));
}

// The list would otherwise be read again only after its interval.
TEST_F(FleetStatesTest, ReadsTheListAgainForAPartitionThatNobodyHas) {
  members_.Set("host1:1", Serving({0}));
  members_.Set("host2:1", Serving({1}));
  const std::filesystem::path list =
      testing::TestDirectory("fleet_states") / "servers";
  std::ofstream(list) << "host1:1\n";
  FleetOptions options;
  options.list = "@" + list.string();
  options.file_interval = absl::Hours(1);
  auto fleet =
      Fleet::Create(options, std::make_unique<FakeTransport>(members_, pool_));
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  fleet_ = *std::move(fleet);
  ASSERT_TRUE(fleet_->Pick(0, Soon()).ok());
  std::ofstream(list, std::ios::app) << "host2:1\n";
  const auto member = fleet_->Pick(1, Soon());
  ASSERT_TRUE(member.ok()) << member.status();
  EXPECT_EQ((*member)->address, "host2:1");
  std::filesystem::remove_all(list.parent_path());
}

TEST_F(FleetStatesTest, EndsWithCallsInFlight) {
  members_.Set("host1:1", std::nullopt);
  members_.Set("host2:1", std::nullopt);
  FleetOptions options;
  options.describe_timeout = absl::Hours(1);
  Start(2, options);
  ASSERT_TRUE(members_.AwaitCalls("host1:1", 1));
  ASSERT_TRUE(members_.AwaitCalls("host2:1", 1));
  fleet_.reset();
  EXPECT_GE(members_.cancelled(), 2);
}

// The fleet cancels the call of a member that is suspected, of one that does
// not answer in time, and of one that is still being asked when the fleet ends.
TEST_F(FleetStatesTest, CallsMayEndBeforeCancelReturns) {
  members_.EndWithinCancel();
  members_.Set("host1:1", Serving({0, 1}));
  members_.Set("host2:1", std::nullopt);
  FleetOptions options;
  options.describe_timeout = absl::Hours(1);
  options.suspect_timeout = absl::Milliseconds(20);
  options.recent_answer = absl::ZeroDuration();
  options.retry_interval = absl::Hours(1);
  Start(2, options);
  ASSERT_TRUE(members_.AwaitCalls("host2:1", 1));
  {
    const auto member = fleet_->Pick(0, Soon());
    ASSERT_TRUE(member.ok()) << member.status();
    members_.Set("host1:1", std::nullopt);
    fleet_->ReportFailure(**member, absl::UnavailableError("connection lost"));
    ASSERT_TRUE(members_.AwaitCalls("host1:1", 2));
    fleet_->Suspect(**member);
    EXPECT_TRUE(AwaitState(State::kUnreachable));
  }
  EXPECT_EQ(members_.cancelled(), 2);
  fleet_.reset();
  EXPECT_EQ(members_.cancelled(), 3);
}

// For ThreadSanitizer: everything at once.
TEST_F(FleetStatesTest, AnyThreadMayCallAnything) {
  members_.Set("host1:1", Serving({0}));
  members_.Set("host2:1", Serving({0, 1}));
  FleetOptions options;
  options.ready_interval = absl::Milliseconds(1);
  options.retry_interval = absl::Milliseconds(1);
  Start(2, options);
  const auto kept = fleet_->Pick(0, Soon());
  ASSERT_TRUE(kept.ok()) << kept.status();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread, member = *kept] {
      for (int i = 0; i < 200; ++i) {
        const auto picked = fleet_->Pick(i % kParts, Soon());
        EXPECT_TRUE(picked.ok()) << picked.status();
        if (thread == 0) {
          fleet_->ReportFailure(*member, absl::UnavailableError("lost"));
        } else if (thread == 1) {
          fleet_->Suspect(*member);
        } else if (thread == 2) {
          EXPECT_EQ(fleet_->Members().size(), 2u);
          fleet_->IsLost(*member);
        } else {
          EXPECT_TRUE(fleet_->WaitForManifest(Soon()).ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace millrace
