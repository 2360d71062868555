// SPDX-License-Identifier: Apache-2.0
// Clients of replicas that hang, are stopped or have moved.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "client/remote_batch_source.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/status.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/server_program.h"

namespace millrace {
namespace {

using testing::Program;
using testing::ScriptedSampler;
using Writer = ScriptedSampler::Writer;

// A client of replicas whose batches are checked and timed.
class ReplicasTest : public ::testing::Test {
 protected:
  void Connect(const std::string& servers, std::shared_ptr<const Store> store) {
    store_ = std::move(store);
    RemoteOptions options;
    options.servers = servers;
    options.partition_wait = absl::Seconds(30);
    auto source = RemoteBatchSource::Connect(options);
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    JobSpec spec;
    spec.fanouts = {2, 2};
    spec.batch_size = 4;
    auto job = ResolveJob(spec, source_->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
  }

  // Fetches batch 0 of an epoch and returns how long it took.
  absl::Duration Fetch(uint32_t epoch) {
    BatchRequest request;
    request.epoch = epoch;
    request.columns = DigestColumns(/*features=*/true, false);
    const SteadyTime start = SteadyNow();
    const absl::StatusOr<Batch> batch =
        testing::PendingFetch(*source_, job_, request).Wait();
    const absl::Duration time = SteadyNow() - start;
    EXPECT_TRUE(batch.ok()) << batch.status();
    const auto local = LocalBatchSource::Create(store_, 1);
    EXPECT_TRUE(local.ok()) << local.status();
    const auto want = (*local)->Make(job_, request);
    EXPECT_TRUE(want.ok()) << want.status();
    if (batch.ok() && want.ok()) {
      EXPECT_EQ(DigestBatch(*batch, store_->schema()),
                DigestBatch(*want, store_->schema()));
    }
    return time;
  }

  // The longest time among the first batches of `count` epochs.
  absl::Duration SlowestOf(uint32_t first, uint32_t count) {
    absl::Duration slowest;
    for (uint32_t epoch = first; epoch < first + count; ++epoch) {
      slowest = std::max(slowest, Fetch(epoch));
    }
    return slowest;
  }

  std::shared_ptr<const Store> store_;
  std::unique_ptr<RemoteBatchSource> source_;
  ResolvedJob job_;
};

TEST_F(ReplicasTest, HangingCallIsSentToAnotherServer) {
  testing::FleetHarness servers(testing::SmallGraph(), 1);
  Notification release;
  std::atomic<bool> hangs = false;
  std::unique_ptr<ScriptedSampler> first, second;
  const auto script = [&](std::unique_ptr<ScriptedSampler>& own) {
    return [&own, &hangs, &release](int, const v1::SampleRequest& request,
                                    Writer& out) {
      if (hangs.exchange(false)) {
        release.WaitForNotification();
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "late");
      }
      return own->Pass(request, out);
    };
  };
  first = std::make_unique<ScriptedSampler>(servers.Stub(0), script(first));
  second = std::make_unique<ScriptedSampler>(servers.Stub(0), script(second));
  Connect(first->address() + "," + second->address(), servers.store());
  // Until both have answered Describe, only one of them is asked.
  uint32_t epoch = 0;
  const SteadyTime deadline = SteadyNow() + absl::Seconds(30);
  while ((epoch < 60 || first->calls() == 0 || second->calls() == 0) &&
         SteadyNow() < deadline) {
    Fetch(epoch++);
  }
  ASSERT_GT(first->calls(), 0);
  ASSERT_GT(second->calls(), 0);
  const int64_t before = source_->hedged_calls();
  for (int hung = 0; hung < 2; ++hung) {
    // On a slow machine other calls were hedged too; one in twenty may be.
    while (source_->calls() < 20 * (source_->hedged_calls() + 2)) {
      Fetch(epoch++);
    }
    hangs = true;
    // The server still describes itself, so only a hedge helps before the
    // attempt times out, which takes 22.5 s.
    EXPECT_LT(Fetch(epoch++), absl::Seconds(15));
  }
  EXPECT_GT(source_->hedged_calls(), before);
  EXPECT_LE(source_->hedged_calls() * 20, source_->calls());
  release.Notify();
  source_.reset();
}

// The server seems to have been replaced at its address since it was last
// asked.
TEST_F(ReplicasTest, ServerThatHasMovedIsAskedAgain) {
  testing::FleetHarness servers(testing::SmallGraph(), 1);
  std::unique_ptr<ScriptedSampler> moved, healthy;
  std::atomic<int> refusals = 0;
  moved = std::make_unique<ScriptedSampler>(
      servers.Stub(0), [&](int, const v1::SampleRequest& request, Writer& out) {
        if (refusals >= 3) return moved->Pass(request, out);
        ++refusals;
        return ToGrpcStatus(WithErrorInfo(
            absl::FailedPreconditionError("this server has another store"),
            {.partition = 0, .moved = true}));
      });
  healthy = std::make_unique<ScriptedSampler>(
      servers.Stub(0), [&](int, const v1::SampleRequest& request, Writer& out) {
        return healthy->Pass(request, out);
      });
  Connect(moved->address() + "," + healthy->address(), servers.store());
  EXPECT_LT(SlowestOf(0, 20), absl::Seconds(5));
  EXPECT_EQ(refusals, 3);
  source_.reset();
}

// Server processes, one of which is stopped: its connections stay open, and it
// sends nothing.
class StoppedReplicaTest : public ReplicasTest {
 protected:
  // Starts a server and returns its address.
  std::string Start(const std::string& partitions,
                    const std::vector<std::string>& more = {}) {
    const std::string port = "port" + std::to_string(servers_.size());
    return testing::Serve(stored_.path(), partitions,
                          stored_.directory() / port, servers_.emplace_back(),
                          more);
  }

  // Checks that batches keep coming while the servers at `places` are stopped
  // one after another.
  void StopInTurn(const std::vector<int>& places, const std::string& list) {
    Connect(list, stored_.Open());
    SlowestOf(0, 30);
    uint32_t epoch = 30;
    for (const int place : places) {
      servers_[place]->Stop();
      // Less than an attempt's time. The server stopped before may not have
      // been found alive yet.
      EXPECT_LT(SlowestOf(epoch, 40), absl::Seconds(15)) << "server " << place;
      epoch += 40;
      servers_[place]->Signal(SIGCONT);
    }
    source_.reset();
  }

  const testing::TestStore stored_{testing::SmallGraph(), 2};
  std::vector<std::unique_ptr<Program>> servers_;
};

TEST_F(StoppedReplicaTest, ClientsAvoidIt) {
  const std::string first = Start("0,1"), second = Start("0,1");
  StopInTurn({0, 1}, first + "," + second);
}

// A hedge may meet a stopped server, too.
TEST_F(StoppedReplicaTest, ClientsAvoidTwoOfThree) {
  std::string list = Start("0,1");
  for (int i = 0; i < 2; ++i) list += "," + Start("0,1");
  Connect(list, stored_.Open());
  SlowestOf(0, 30);
  servers_[0]->Stop();
  servers_[1]->Stop();
  EXPECT_LT(SlowestOf(30, 40), absl::Seconds(6));
  source_.reset();
}

// The home server answers when asked whether it is alive; only it can stop
// using the owner that is not.
TEST_F(StoppedReplicaTest, HomeServersAvoidIt) {
  const std::string owners = Start("1") + "," + Start("1");
  const std::string home = Start("0", {"--peers", owners});
  StopInTurn({0, 1}, owners + "," + home);
}

}  // namespace
}  // namespace millrace
