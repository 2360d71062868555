// SPDX-License-Identifier: Apache-2.0
// Which server of another partition a home asks, seen from its client.
#include "server/peers/peer_picker.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

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

  void Fail(ScriptedSampler& replica, const absl::Status& status) {
    replica.OnExpand([status] { return ToGrpcStatus(status); });
  }
  // How often a replica has been asked since Start().
  int asked(int replica) const {
    return replicas_[replica]->expands() - asked_before_[replica];
  }

  testing::FleetHarness fleet_;
  std::vector<std::unique_ptr<ScriptedSampler>> replicas_;
  int asked_before_[2] = {};
  std::unique_ptr<SamplerServer> home_;
};

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

TEST_F(PeerPickerTest, TurnsToTheReplicaThatIsFree) {
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

TEST_F(PeerPickerTest, AsksNobodyElseWhatNobodyCanAnswer) {
  Start(2);
  for (const auto& replica : replicas_) {
    Fail(*replica, absl::InvalidArgumentError("wrong"));
  }
  const absl::Status status = Sample();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(asked(0) + asked(1), 1);
}

// So that the home has time to tell its client which server did not answer. The
// client gives a call 30 seconds, and gRPC rounds what is left of them up.
TEST_F(PeerPickerTest, PeersHaveASecondLessThanTheHome) {
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
