// SPDX-License-Identifier: Apache-2.0
// A millrace-server process that is stopped, not ended: its connections stay
// open, and it sends nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>

#include "client/remote_batch_source.h"
#include "common/base/steady_time.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/node_seeds.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/server_program.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::Program;

// This process serves partition 0, and another one partition 1.
class StoppedServerTest : public ::testing::Test {
 protected:
  StoppedServerTest() {
    peer_address_ = testing::Serve(stored_.path(), "1",
                                   stored_.directory() / "port", peer_);
    ServerOptions options;
    options.peers = peer_address_;
    home_ = SamplerServer::Start(stored_.Open({0}), options).value();
  }

  static JobSpec Job() {
    JobSpec spec;
    spec.fanouts = {-1, -1};
    spec.batch_size = 8;
    return spec;
  }

  absl::Status SampleAtHome(absl::Duration deadline) const {
    const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
        home_->address(), ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments()));
    return testing::CallSample(
               *stub, testing::SampleRequestOf(Job(), Columns(), 0), deadline)
        .status;
  }

  const testing::TestStore stored_{testing::SmallGraph(), 2};
  std::unique_ptr<Program> peer_;
  std::string peer_address_;
  std::unique_ptr<SamplerServer> home_;
};

TEST_F(StoppedServerTest, HomeNamesTheOwnerThatDoesNotAnswerInTime) {
  ASSERT_TRUE(SampleAtHome(absl::Seconds(30)).ok());
  peer_->Stop();
  const absl::Status status = SampleAtHome(absl::Seconds(2));
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ErrorInfoOf(status).partition, 1) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(peer_address_));
}

TEST_F(StoppedServerTest, ClientGivesUpSoonAfterTheWait) {
  RemoteOptions options;
  options.servers = home_->address() + "," + peer_address_;
  options.partition_wait = absl::Seconds(5);
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto job = ResolveJob(Job(), (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const auto fetch = [&] {
    BatchRequest request;
    request.explicit_seeds = testing::Seeds{{0, 1, 2, 3, 4, 5, 6, 7}};
    return testing::PendingFetch(**source, *job, std::move(request))
        .Wait()
        .status();
  };
  ASSERT_TRUE(fetch().ok()) << fetch();
  peer_->Stop();
  const SteadyTime start = SteadyNow();
  const absl::Status status = fetch();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ErrorInfoOf(status).partition, 1);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gave up on partition 1 after 5s"));
  // gRPC takes 20 s to notice that the connection is dead.
  EXPECT_LT(SteadyNow() - start, absl::Seconds(15));
}

}  // namespace
}  // namespace millrace
