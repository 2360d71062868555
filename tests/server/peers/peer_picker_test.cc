// SPDX-License-Identifier: Apache-2.0
// Which server of another partition a home asks, observed through a client.
#include "server/peers/peer_picker.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/grpc/status.h"
#include "common/wire/error_info.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CallSample;
using ::testing::HasSubstr;
using testing::ScriptedSampler;

// A home of partition 0 with two replicas of partition 1 that do as told.
class PeerPickerTest : public ::testing::Test {
 protected:
  PeerPickerTest() : fleet_(testing::WideGraph(300, 5, 8), 2) {
    for (int i = 0; i < 2; ++i) {
      replicas_.push_back(std::make_unique<ScriptedSampler>(
          fleet_.Stub(1), ScriptedSampler::Script()));
    }
  }

  // Starts a home that knows the first `count` replicas, and waits until it has
  // asked each of them.
  void Start(int count) {
    ServerOptions options;
    options.peer_wait = absl::Seconds(5);
    for (int i = 0; i < count; ++i) {
      options.peers += (i > 0 ? "," : "") + replicas_[i]->address();
    }
    home_ = SamplerServer::Start(
                Store::Open(fleet_.store()->path(), {0}).value(), options)
                .value();
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(testing::Eventually([&] {
        EXPECT_EQ(Sample(), absl::OkStatus());
        return replicas_[i]->expands() > 0;
      }));
    }
    for (int i = 0; i < 2; ++i) asked_before_[i] = replicas_[i]->expands();
  }

  absl::Status Sample() {
    JobSpec spec;
    spec.fanouts = {3, 3};
    spec.batch_size = 16;
    const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
        home_->address(), ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments()));
    return CallSample(*stub, testing::SampleRequestOf(spec, Columns(), 0))
        .status;
  }

  // `script` decides from now on how the n-th call (from 0) to either replica
  // begins, and `edit` changes its reply. Returns which replicas were asked, in
  // turn. The arguments must outlive the calls.
  const std::vector<int>& Script(
      const std::function<absl::Status(int)>& script,
      const std::function<void(int, v1::ExpandReply&)>& edit) {
    for (int i = 0; i < 2; ++i) {
      replicas_[i]->OnExpand([this, i, &script] {
        MutexLock lock(&mutex_);
        asked_in_turn_.push_back(i);
        return ToGrpcStatus(
            script(static_cast<int>(asked_in_turn_.size()) - 1));
      });
      replicas_[i]->EditExpand([this, &edit](v1::ExpandReply& reply) {
        MutexLock lock(&mutex_);
        edit(static_cast<int>(asked_in_turn_.size()) - 1, reply);
      });
    }
    return asked_in_turn_;
  }

  void Fail(ScriptedSampler& replica, const absl::Status& status) {
    replica.OnExpand([status] { return ToGrpcStatus(status); });
  }
  // How many times a replica has been asked since Start().
  int asked(int replica) const {
    return replicas_[replica]->expands() - asked_before_[replica];
  }

  testing::FleetHarness fleet_;
  Mutex mutex_;
  std::vector<int> asked_in_turn_;  // read by the test between calls
  std::vector<std::unique_ptr<ScriptedSampler>> replicas_;
  int asked_before_[2] = {};
  std::unique_ptr<SamplerServer> home_;
};

// Leaves only the first node in an answer.
void KeepFirstNode(v1::ExpandReply& reply) {
  ASSERT_EQ(reply.picks_size(), 1);
  v1::ExpandReply::Picks& picks = *reply.mutable_picks(0);
  uint32_t first = 0;
  ASSERT_GT(picks.counts().size(), sizeof first);
  std::memcpy(&first, picks.counts().data(), sizeof first);
  picks.mutable_counts()->resize(sizeof first);
  picks.mutable_neighbors()->resize(first * sizeof(uint32_t));
}

absl::Status Busy() {
  return WithErrorInfo(absl::ResourceExhaustedError("busy"),
                       {.partition = {}, .retry_after = kRetryAfter});
}

// The server is not asked again, since its client can better decide when to
// retry.
TEST_F(PeerPickerTest, AsksABusyServerWithoutReplicasOnce) {
  Start(1);
  Fail(*replicas_[0], Busy());
  const absl::Status status = Sample();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("partition 1, server " + replicas_[0]->address() + ": busy"));
  EXPECT_GT(ErrorInfoOf(status).retry_after, absl::ZeroDuration());
  EXPECT_EQ(asked(0) + asked(1), 1);
}

TEST_F(PeerPickerTest, AsksEachBusyReplicaOnce) {
  Start(2);
  for (const auto& replica : replicas_) Fail(*replica, Busy());
  const absl::Status status = Sample();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(asked(0), 1);
  EXPECT_EQ(asked(1), 1);
}

TEST_F(PeerPickerTest, SwitchesToTheIdleReplica) {
  Start(2);
  for (size_t failing : {0, 1}) {
    Fail(*replicas_[failing], Busy());
    Fail(*replicas_[1 - failing], absl::OkStatus());
    EXPECT_EQ(Sample(), absl::OkStatus());
  }
}

TEST_F(PeerPickerTest, GivesUpAServerThatFailsAgainAndAgain) {
  Start(1);
  Fail(*replicas_[0], absl::UnavailableError("broken"));
  const absl::Status status = Sample();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("broken"));
  EXPECT_EQ(ErrorInfoOf(status).partition, 1);
  EXPECT_EQ(asked(0), 3);
}

// The answers to the first hop come node by node, each after a failure.
TEST_F(PeerPickerTest, CountsTheFailuresOfEachPieceAlone) {
  Start(1);
  const std::function<absl::Status(int)> script = [](int call) {
    return call < 8 && call % 2 == 0 ? absl::UnavailableError("broken")
                                     : absl::OkStatus();
  };
  const std::function<void(int, v1::ExpandReply&)> edits =
      [](int call, v1::ExpandReply& reply) {
        if (call < 8) KeepFirstNode(reply);
      };
  Script(script, edits);
  EXPECT_EQ(Sample(), absl::OkStatus());
  EXPECT_GE(asked(0), 8);
}

// The replica that was busy with the first piece, and is still avoided, takes
// over when the other one is busy with the second.
TEST_F(PeerPickerTest, EachPieceMayGoToAnyReplica) {
  Start(2);
  const absl::Status busy =
      WithErrorInfo(absl::ResourceExhaustedError("busy"),
                    {.partition = {}, .retry_after = absl::Seconds(5)});
  const std::function<absl::Status(int)> script = [&busy](int call) {
    return call == 0 || call == 2 ? busy : absl::OkStatus();
  };
  const std::function<void(int, v1::ExpandReply&)> edits =
      [](int call, v1::ExpandReply& reply) {
        if (call == 1) KeepFirstNode(reply);
      };
  const std::vector<int>& asked_in_turn = Script(script, edits);
  EXPECT_EQ(Sample(), absl::OkStatus());
  ASSERT_GE(asked_in_turn.size(), 4u);
  EXPECT_EQ(asked_in_turn[1], 1 - asked_in_turn[0]);
  EXPECT_EQ(asked_in_turn[2], asked_in_turn[1]);
  EXPECT_EQ(asked_in_turn[3], asked_in_turn[0]);
}

TEST_F(PeerPickerTest, DoesNotRetryInvalidRequestsElsewhere) {
  Start(2);
  for (const auto& replica : replicas_) {
    Fail(*replica, absl::InvalidArgumentError("wrong"));
  }
  const absl::Status status = Sample();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(asked(0) + asked(1), 1);
}

// The home needs that second to tell its client which server did not answer.
// The client gives a call 30 seconds, and gRPC rounds what is left of them up.
TEST_F(PeerPickerTest, PeerCallsGetOneSecondLessThanTheHome) {
  Start(1);
  // A batch that takes half a second proves nothing.
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Sample(), absl::OkStatus());
    EXPECT_LT(absl::FromChrono(replicas_[0]->expand_deadline()),
              absl::Now() + absl::Seconds(29.5));
  }
}

}  // namespace
}  // namespace millrace
