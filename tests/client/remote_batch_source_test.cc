// SPDX-License-Identifier: Apache-2.0
#include "client/remote_batch_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/interrupt.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/node_seeds.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/silent_listener.h"

namespace millrace {
namespace {

using testing::FleetHarness;
using Pending = testing::PendingFetch;
using testing::ScriptedSampler;
using Writer = ScriptedSampler::Writer;
using ::testing::HasSubstr;

// How fetches end when their source is closed.
absl::Status Closed() { return absl::CancelledError("the source was closed"); }

JobSpec Job() {
  JobSpec spec;
  spec.fanouts = {2, 2};
  spec.batch_size = 4;
  return spec;
}

// One partition behind a scripted server, and a source connected to it.
class ScriptedTest : public ::testing::Test {
 protected:
  ScriptedTest() : servers_(testing::SmallGraph(), 1) {}

  void Connect(ScriptedSampler::Script script,
               absl::Duration partition_wait = absl::Seconds(20)) {
    scripted_ =
        std::make_unique<ScriptedSampler>(servers_.Stub(0), std::move(script));
    RemoteOptions options;
    options.servers = scripted_->address();
    options.partition_wait = partition_wait;
    auto source = RemoteBatchSource::Connect(options);
    // The short waits of some tests may be too short for connecting.
    const SteadyTime end = SteadyNow() + absl::Seconds(20);
    while (!source.ok() && SteadyNow() < end) {
      source = RemoteBatchSource::Connect(options);
    }
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
    auto job = ResolveJob(Job(), source_->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
  }

  // Ends both sides; afterwards the script no longer runs.
  void Close() {
    source_.reset();
    scripted_.reset();
  }

  static BatchRequest Request() {
    BatchRequest request;
    request.columns = DigestColumns(/*features=*/true, false);
    return request;
  }

  absl::StatusOr<Batch> Fetch() {
    return Pending(*source_, job_, Request()).Wait();
  }

  // Expects the batch to equal the one made without servers.
  void ExpectRight(const absl::StatusOr<Batch>& batch) {
    ASSERT_TRUE(batch.ok()) << batch.status();
    const auto local = LocalBatchSource::Create(servers_.store(), 1);
    ASSERT_TRUE(local.ok()) << local.status();
    const auto want = (*local)->Make(job_, Request());
    ASSERT_TRUE(want.ok()) << want.status();
    const Schema& schema = servers_.store()->schema();
    EXPECT_EQ(DigestBatch(*batch, schema), DigestBatch(*want, schema));
  }

  FleetHarness servers_;
  std::unique_ptr<ScriptedSampler> scripted_;
  std::unique_ptr<RemoteBatchSource> source_;
  ResolvedJob job_;
};

TEST_F(ScriptedTest, StreamBrokenMidBatchIsRestartedWhole) {
  Connect([this](int number, const v1::SampleRequest& request, Writer& out) {
    if (number > 0) return scripted_->Pass(request, out);
    (void)scripted_->Pass(request, out, [](v1::Frame& frame) {
      frame.mutable_payload()->resize(frame.payload().size() / 2);
    });
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the cable is cut");
  });
  ExpectRight(Fetch());
  EXPECT_EQ(scripted_->calls(), 2);
}

TEST_F(ScriptedTest, KeepsRetryingABatchThatBreaksOffForLongerThanTheWait) {
  constexpr absl::Duration kWait = absl::Milliseconds(50);
  SteadyTime first = SteadyTime::InfiniteFuture();
  int breaks = 0;  // one call at a time
  Connect(
      [&](int, const v1::SampleRequest& request, Writer& out) {
        const SteadyTime now = SteadyNow();
        first = std::min(first, now);
        if (now > first + 4 * kWait) return scripted_->Pass(request, out);
        ++breaks;
        (void)scripted_->Pass(request, out, [](v1::Frame& frame) {
          frame.mutable_payload()->resize(frame.payload().size() / 2);
        });
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not today");
      },
      kWait);
  ExpectRight(Fetch());
  Close();
  EXPECT_GE(breaks, 2);
}

// The server describes itself, so it looks alive, but its calls hang: there are
// two attempts, one with the whole wait and one with the minimum timeout,
// neither with call_timeout.
TEST_F(ScriptedTest, ServerThatSaysNothingIsGivenUpSoonAfterTheWait) {
  Notification release;
  Connect(
      [&](int, const v1::SampleRequest&, Writer&) {
        release.WaitForNotification();
        return grpc::Status::OK;
      },
      absl::Seconds(5));
  const SteadyTime start = SteadyNow();
  const absl::Status status = Fetch().status();
  EXPECT_LT(SteadyNow() - start, absl::Seconds(20));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ErrorInfoOf(status).partition, 0);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("no answer from " + scripted_->address()));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gave up on partition 0 after 5s"));
  EXPECT_EQ(scripted_->calls(), 2);
  release.Notify();
  Close();
}

TEST_F(ScriptedTest, RetriesCancelledFromAStoppingServer) {
  Connect([this](int number, const v1::SampleRequest& request, Writer& out) {
    return number == 0 ? grpc::Status::CANCELLED
                       : scripted_->Pass(request, out);
  });
  ExpectRight(Fetch());
  EXPECT_EQ(scripted_->calls(), 2);
}

TEST_F(ScriptedTest, WaitsOutAnOverloadAsTheServerAsks) {
  constexpr absl::Duration kLater = absl::Milliseconds(200);
  // An overloaded partition is not lost, so --partition-wait does not apply.
  Connect(
      [&](int number, const v1::SampleRequest& request, Writer& out) {
        return number < 2 ? ToGrpcStatus(WithErrorInfo(
                                absl::ResourceExhaustedError("too much"),
                                {.partition = {}, .retry_after = kLater}))
                          : scripted_->Pass(request, out);
      },
      absl::Milliseconds(100));
  const SteadyTime start = SteadyNow();
  ExpectRight(Fetch());
  EXPECT_GE(SteadyNow() - start, 2 * kLater);
  EXPECT_EQ(scripted_->calls(), 3);
}

TEST_F(ScriptedTest, ProtocolViolationIsInternalAndNamesTheServer) {
  std::function<void(v1::Frame&)> edit;
  Connect([&](int, const v1::SampleRequest& request, Writer& out) {
    return scripted_->Pass(request, out, edit);
  });
  const std::vector<std::function<void(v1::Frame&)>> breakages = {
      [](v1::Frame& frame) { frame.mutable_payload()->append(9999, 'x'); },
      [](v1::Frame& frame) { frame.mutable_payload()->pop_back(); },
      [](v1::Frame& frame) { frame.mutable_header()->clear_stream(); },
      [](v1::Frame& frame) {
        frame.mutable_header()->mutable_stream()->set_hops(7);
      }};
  for (size_t i = 0; i < breakages.size(); ++i) {
    edit = breakages[i];
    const absl::Status status = Fetch().status();
    EXPECT_TRUE(absl::IsInternal(status)) << i << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(scripted_->address()));
    EXPECT_EQ(scripted_->calls(), static_cast<int>(i) + 1);  // no retry
  }
  Close();
}

TEST_F(ScriptedTest, WrongNumbersOfIdsAreInternalAndNameTheServer) {
  Connect([this](int, const v1::SampleRequest& request, Writer& out) {
    return scripted_->Pass(request, out);
  });
  BatchRequest request = Request();
  request.explicit_seeds.emplace().ids = {1, 2, 3};
  const auto fetch = [&] { return Pending(*source_, job_, request).Wait(); };
  ASSERT_TRUE(fetch().ok());
  for (const int ids : {0, 2, 4}) {
    scripted_->EditResolve([ids](v1::ResolveReply& reply) {
      reply.mutable_ids()->resize(ids * sizeof(uint32_t));
    });
    const absl::Status status = fetch().status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(scripted_->address()));
  }
  EXPECT_EQ(scripted_->calls(), 1);
}

TEST_F(ScriptedTest, ServersErrorForBadRequestsIsKept) {
  Connect([](int, const v1::SampleRequest&, Writer&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "fanout is odd");
  });
  EXPECT_EQ(Fetch().status(), absl::InvalidArgumentError("fanout is odd"));
  EXPECT_EQ(scripted_->calls(), 1);
}

TEST_F(ScriptedTest, BothConnectionsToAServerAreUsed) {
  Connect([this](int, const v1::SampleRequest& request, Writer& out) {
    return scripted_->Pass(request, out);
  });
  for (int i = 0; i < 4; ++i) ExpectRight(Fetch());
  EXPECT_EQ(scripted_->connections(), 2u);
}

TEST_F(ScriptedTest, ClosingTheSourceEndsCallsInFlight) {
  constexpr int kFetches = 8;
  std::latch started(kFetches);
  Notification release;
  Connect([&](int, const v1::SampleRequest&, Writer&) {
    started.count_down();
    release.WaitForNotification();
    return grpc::Status::OK;
  });
  std::vector<std::unique_ptr<Pending>> fetches;
  for (int i = 0; i < kFetches; ++i) {
    fetches.push_back(std::make_unique<Pending>(*source_, job_, Request()));
  }
  started.wait();
  source_.reset();
  for (const auto& fetch : fetches) {
    EXPECT_TRUE(fetch->done());
    EXPECT_EQ(fetch->Wait().status(), Closed());
  }
  fetches.clear();  // waits until nothing holds them
  release.Notify();
  Close();
}

TEST_F(ScriptedTest, ClosingTheSourceEndsFetchesThatWaitToRetry) {
  std::latch failed(3);
  Connect(
      [&](int number, const v1::SampleRequest&, Writer&) {
        if (number < 3) failed.count_down();
        return ToGrpcStatus(
            WithErrorInfo(absl::UnavailableError("not now"),
                          {.partition = {}, .retry_after = absl::Hours(1)}));
      },
      absl::Hours(2));
  std::vector<std::unique_ptr<Pending>> fetches;
  for (int i = 0; i < 3; ++i) {
    fetches.push_back(std::make_unique<Pending>(*source_, job_, Request()));
  }
  failed.wait();
  source_.reset();
  for (const auto& fetch : fetches) {
    EXPECT_EQ(fetch->Wait().status(), Closed());
  }
  Close();
}

TEST(RemoteBatchSourceTest, LostPartitionIsNamedAfterTheWait) {
  FleetHarness servers(testing::SmallGraph(), 2);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  options.partition_wait = absl::Milliseconds(300);
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto job = ResolveJob(Job(), (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  servers.StopServer(1);
  const SteadyTime start = SteadyNow();
  BatchRequest request;
  request.explicit_seeds = testing::Seeds{{0, 1, 2, 3, 4, 5, 6, 7}};
  Pending pending(**source, *job, std::move(request));
  const absl::Status status = pending.Wait().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ErrorInfoOf(status).partition, 1);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("gave up on partition 1 after 300ms"));
  EXPECT_GE(SteadyNow() - start, options.partition_wait);
}

TEST(RemoteBatchSourceTest, ListOfTwoStoresIsRefusedHoweverLongTheWait) {
  FleetHarness small(testing::SmallGraph(), 1);
  FleetHarness rich(testing::RichGraph(), 1);
  RemoteOptions options;
  options.servers = small.server(0).address() + "," + rich.server(0).address();
  options.partition_wait = absl::Hours(1);
  const absl::Status status = RemoteBatchSource::Connect(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (FleetHarness* harness : {&small, &rich}) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(harness->server(0).address()));
  }
}

TEST(RemoteBatchSourceTest, MoreExplicitSeedsThanABatchMayHaveAreRefused) {
  FleetHarness servers(testing::SmallGraph(), 1);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto job = ResolveJob(Job(), (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  BatchRequest request;
  request.explicit_seeds.emplace().ids.assign(1048577, 3);
  Pending pending(**source, *job, std::move(request));
  const absl::Status status = pending.Wait().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("1048577 explicit seeds are above the limit of 1048576 "
                        "of one batch"));
}

// 2.5 million ids do not fit into one message.
TEST(RemoteBatchSourceTest, ManyIdsAreAskedForInPieces) {
  FleetHarness servers(testing::SmallGraph(), 2);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const int64_t nodes = (*source)->manifest().schema.node_types[0].count;
  std::vector<int64_t> original_ids(2500000);
  for (size_t i = 0; i < original_ids.size(); ++i) {
    original_ids[i] = static_cast<int64_t>(i) % nodes;
  }
  const auto ids = (*source)->Resolve(0, original_ids);
  ASSERT_TRUE(ids.ok()) << ids.status();
  const auto back = (*source)->Gather(0, NodeColumn::kOriginalId, *ids);
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->rows(), static_cast<int64_t>(original_ids.size()));
  for (size_t i = 0; i < original_ids.size(); ++i) {
    ASSERT_EQ(back->IntegerAt(static_cast<int64_t>(i)), original_ids[i]) << i;
  }
}

// Each half of the nodes has 768 KB of features, so the home sends its half in
// two frames.
TEST(RemoteBatchSourceTest, OtherOwnersAreAskedOnceForTheRowsOfABatch) {
  constexpr int64_t kNodes = 6000;
  testing::TestGraph graph;
  graph.types = {
      {.count = kNodes, .feature = testing::RampFeature(kNodes, 64)}};
  graph.relations = {{.edges = {{0, 1}}}};
  graph.splits = {{}};
  for (int64_t v = 0; v < kNodes; ++v) graph.splits[0].ids.push_back(v);
  FleetHarness servers(graph, 2);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  JobSpec spec;
  spec.batch_size = kNodes;
  const auto job = ResolveJob(spec, (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::StatusOr<Batch> batch =
      Pending(**source, *job, BatchRequest()).Wait();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->nodes[0].count(), kNodes);
  EXPECT_EQ((*source)->calls(), 2);
}

// Only the rows that are missing are asked for again. The call for those of
// partition 0 is made first, to a server that has been stopped.
TEST(RemoteBatchSourceTest, RowsOfAPartitionThatComesBackAreFetchedAgain) {
  FleetHarness servers(testing::SmallGraph(), 2);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto nodes =
      static_cast<uint64_t>((*source)->manifest().schema.node_types[0].count);
  std::vector<uint64_t> ids(nodes);
  for (uint64_t id = 0; id < nodes; ++id) ids[id] = nodes - 1 - id;
  servers.StopServer(0);
  absl::StatusOr<Array> rows = absl::UnknownError("");
  std::thread gather(
      [&] { rows = (*source)->Gather(0, NodeColumn::kOriginalId, ids); });
  EXPECT_TRUE(
      testing::Eventually([&] { return (*source)->received_bytes() > 0; }));
  servers.StartServer(0);
  gather.join();
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*source)->received_bytes(), nodes * sizeof(int64_t));
  const std::vector<int64_t> originals(rows->As<int64_t>().begin(),
                                       rows->As<int64_t>().end());
  const auto back = (*source)->Resolve(0, originals);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, ids);
}

TEST(RemoteBatchSourceTest, RowsOfWrongIdsAreRefused) {
  FleetHarness servers(testing::SmallGraph(), 2);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<uint64_t> last = {7}, one_more = {7, 8};
  EXPECT_TRUE((*source)->Gather(0, NodeColumn::kLabel, last).ok());
  const absl::Status beyond =
      (*source)->Gather(0, NodeColumn::kLabel, one_more).status();
  EXPECT_TRUE(absl::IsInvalidArgument(beyond)) << beyond;
  EXPECT_THAT(
      std::string(beyond.message()),
      HasSubstr("id 8 at position 1 is out of range; node has 8 nodes"));
  const absl::Status absent =
      (*source)->Gather(0, NodeColumn::kTime, last).status();
  EXPECT_EQ(absent,
            absl::FailedPreconditionError("node type node has no times"));
}

TEST(RemoteBatchSourceTest, ColumnsThatNothingHasAreRefusedWithoutACall) {
  FleetHarness servers(testing::SmallGraph(), 1);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto job = ResolveJob(Job(), (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  BatchRequest request;
  request.columns.edge_features = true;
  Pending pending(**source, *job, std::move(request));
  EXPECT_TRUE(absl::IsFailedPrecondition(pending.Wait().status()));
  EXPECT_EQ((*source)->calls(), 0);
}

// The server of partition 0 is gone, and nothing but the home is needed: even
// nodes are in partition 0, and none is expanded.
TEST(RemoteBatchSourceTest, BatchesAreMadeAtTheirHomes) {
  FleetHarness servers(testing::SmallGraph(), 2);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  options.partition_wait = absl::Milliseconds(100);
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  JobSpec spec = Job();
  spec.fanouts = {};
  spec.seed_order = SeedOrder::kLocal;
  spec.shuffle = false;
  const auto job = ResolveJob(spec, (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  servers.StopServer(0);
  const auto fetch = [&](uint32_t batch) {
    return Pending(**source, *job, {.batch = batch}).Wait().status();
  };
  // Seeds 0 and 4 are of partition 0, and 1 and 7 of partition 1.
  const absl::Status lost = fetch(0);
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_EQ(ErrorInfoOf(lost).partition, 0);
  EXPECT_TRUE(fetch(1).ok()) << fetch(1);
}

// One server has both partitions, and is asked in the name of the home.
TEST(RemoteBatchSourceTest, HomesOfExplicitSeedsFollowTheBatch) {
  FleetHarness servers(testing::SmallGraph(), 2);
  const auto both =
      SamplerServer::Start(servers.store(), ServerOptions()).value();
  Mutex mutex;
  std::vector<uint32_t> homes;
  ScriptedSampler scripted(
      v1::Sampler::NewStub(grpc::CreateChannel(
          both->address(), grpc::InsecureChannelCredentials())),
      [&](int, const v1::SampleRequest& request, Writer& out) {
        MutexLock lock(&mutex);
        homes.push_back(request.partition());
        return scripted.Pass(request, out);
      });
  RemoteOptions options;
  options.servers = scripted.address();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto job = ResolveJob(Job(), (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  for (const uint32_t batch : {4u, 5u, 7u, 6u}) {
    BatchRequest request{.epoch = 1, .batch = batch};
    request.explicit_seeds.emplace().ids = {1, 4};
    EXPECT_TRUE(Pending(**source, *job, std::move(request)).Wait().ok());
  }
  MutexLock lock(&mutex);
  EXPECT_THAT(homes, ::testing::ElementsAre(0, 1, 1, 0));
}

// The share of rows that is kept is fetched once, with the first batch that has
// features.
TEST(RemoteBatchSourceTest, CachesHoldTheShareThatIsWanted) {
  FleetHarness servers(testing::SmallGraph(), 2);
  const auto bytes_of_second = [&](double cache_ratio, int64_t& calls) {
    RemoteOptions options;
    options.servers = "@" + servers.list();
    options.cache_ratio = cache_ratio;
    const auto source = RemoteBatchSource::Connect(options).value();
    const auto job = ResolveJob(Job(), source->manifest()).value();
    BatchRequest plain;
    plain.columns.features = false;
    EXPECT_TRUE(Pending(*source, job, plain).Wait().ok());
    calls = source->calls();
    EXPECT_TRUE(Pending(*source, job, BatchRequest()).Wait().ok());
    const uint64_t before = source->received_bytes();
    EXPECT_TRUE(Pending(*source, job, BatchRequest()).Wait().ok());
    return source->received_bytes() - before;
  };
  int64_t plain_calls = 0, quarter_calls = 0, all_calls = 0;
  const uint64_t none = bytes_of_second(0, plain_calls);
  const uint64_t quarter = bytes_of_second(0.25, quarter_calls);
  const uint64_t all = bytes_of_second(1, all_calls);
  EXPECT_LT(quarter, none);
  EXPECT_LT(all, quarter);
  EXPECT_EQ(quarter_calls, plain_calls);
  EXPECT_EQ(all_calls, plain_calls);
}

TEST(RemoteBatchSourceTest, BatchesMayNotBeLargerThanTheLimit) {
  FleetHarness servers(testing::SmallGraph(), 1);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  options.max_batch_bytes = 10;
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto job = ResolveJob(Job(), (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status status =
      Pending(**source, *job, BatchRequest()).Wait().status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("10"));
}

TEST(RemoteBatchSourceTest, BytesReceivedAreCounted) {
  FleetHarness servers(testing::SmallGraph(), 1);
  RemoteOptions options;
  options.servers = "@" + servers.list();
  const auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->received_bytes(), 0u);
  // 3 floats a row.
  const std::vector<uint64_t> ids = {7, 0, 7, 3, 2};
  const auto rows = (*source)->Gather(0, NodeColumn::kFeature, ids);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*source)->received_bytes(), 5 * 3 * 4u);
  EXPECT_EQ((*source)->calls(), 1);
  EXPECT_EQ((*source)->hedged_calls(), 0);
}

// If the call were retried, it would end only after partition_wait, or at the
// test's time limit.
TEST_F(ScriptedTest, MessageThatIsTooLargeIsFinalAndNamesTheLimit) {
  Connect([this](int, const v1::SampleRequest& request, Writer& out) {
    return scripted_->Pass(request, out, [](v1::Frame& frame) {
      frame.mutable_payload()->resize(17 << 20);
    });
  });
  const absl::Status status = Fetch().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("16777216 bytes"));
  EXPECT_EQ(scripted_->calls(), 1);
}

// One of two replicas is busy with a call that does not end, so all other calls
// go to the other one, even if made one after another.
TEST(RemoteBatchSourceTest, ReplicasShareCallsByOutstandingBytes) {
  FleetHarness servers(testing::SmallGraph(), 1);
  Notification entered, release;
  std::atomic<bool> hold = false;
  std::unique_ptr<ScriptedSampler> replicas[2];
  for (auto& replica : replicas) {
    replica = std::make_unique<ScriptedSampler>(
        servers.Stub(0),
        [&](int, const v1::SampleRequest& request, Writer& out) {
          if (hold.exchange(false)) {
            entered.Notify();
            release.WaitForNotification();
          }
          return replica->Pass(request, out);
        });
  }
  RemoteOptions options;
  options.servers = replicas[0]->address() + "," + replicas[1]->address();
  auto source = RemoteBatchSource::Connect(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto job = ResolveJob(Job(), (*source)->manifest());
  ASSERT_TRUE(job.ok()) << job.status();
  const auto fetch = [&] {
    return Pending(**source, *job, BatchRequest()).Wait().status();
  };
  // Waits until both are known.
  while (replicas[0]->calls() == 0 || replicas[1]->calls() == 0) {
    ASSERT_TRUE(fetch().ok());
  }
  hold = true;
  const int before = replicas[0]->calls() + replicas[1]->calls();
  Pending held(**source, *job, BatchRequest());
  entered.WaitForNotification();
  const int calls[2] = {replicas[0]->calls(), replicas[1]->calls()};
  EXPECT_EQ(calls[0] + calls[1], before + 1);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(fetch().ok());
  EXPECT_THAT((std::vector<int>{replicas[0]->calls() - calls[0],
                                replicas[1]->calls() - calls[1]}),
              ::testing::UnorderedElementsAre(0, 6));
  release.Notify();
  EXPECT_TRUE(held.Wait().ok());
}

// Sends SIGINT after finding a server that never answers; exits with 0 if
// Connect returns soon.
void ConnectAndInterrupt() {
  InstallInterruptHandler();
  const testing::SilentListener listener;
  std::thread interrupt([&listener] {
    listener.AwaitConnection();
    raise(SIGINT);
  });
  RemoteOptions options;
  options.servers = "127.0.0.1:" + std::to_string(listener.port());
  options.partition_wait = absl::Hours(1);
  const auto source = RemoteBatchSource::Connect(options);
  interrupt.join();
  std::_Exit(absl::IsCancelled(source.status()) ? 0 : 1);
}

TEST(RemoteBatchSourceDeathTest, InterruptEndsTheWaitForAFleet) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ConnectAndInterrupt(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace millrace
