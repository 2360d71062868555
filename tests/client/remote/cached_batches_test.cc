// SPDX-License-Identifier: Apache-2.0
// Batches, and the bytes they cost, with a feature cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "client/remote_batch_source.h"
#include "common/base/field_error.h"
#include "common/sample/digest.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/pending_fetch.h"

namespace millrace {
namespace {

using testing::FleetHarness;
using ::testing::HasSubstr;
using testing::PendingFetch;

constexpr int kParts = 3;
constexpr int64_t kPapers = 60;
constexpr int64_t kRowFloats = 5;

// Papers with features; venues with other features, so few that one partition
// has none; authors without features; topics that no edge reaches.
testing::TestGraph Graph() {
  testing::TestGraph graph;
  graph.types = {
      {.name = "paper",
       .count = kPapers,
       .feature = testing::RampFeature(kPapers, kRowFloats)},
      {.name = "venue", .count = 2, .feature = testing::RampFeature(2, 3)},
      {.name = "author", .count = 10},
      {.name = "topic", .count = 4, .feature = testing::RampFeature(4, 2)}};
  testing::TestRelation cites = {
      .src = "paper", .name = "cites", .dst = "paper"};
  testing::TestRelation prints = {
      .src = "venue", .name = "prints", .dst = "paper"};
  testing::TestRelation writes = {
      .src = "author", .name = "writes", .dst = "paper"};
  testing::TestSplit train = {.type = "paper"};
  for (int64_t v = 0; v < kPapers; ++v) {
    for (int64_t i = 1; i <= 4; ++i) {
      cites.edges.emplace_back((v * i + 7) % (kPapers / 2), v);
    }
    prints.edges.emplace_back(v % 2, v);
    writes.edges.emplace_back(v % 10, v);
    if (v % 3 != 0) train.ids.push_back(v);
  }
  graph.relations = {cites, prints, writes};
  graph.splits = {train};
  return graph;
}

JobSpec Job() {
  JobSpec spec;
  spec.seed_type = "paper";
  spec.fanouts = {3, 2};
  spec.batch_size = 8;
  return spec;
}

constexpr uint32_t kBatches = 5;

class CachedBatchesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { fleet_ = new FleetHarness(Graph(), kParts); }
  static void TearDownTestSuite() { delete fleet_; }

  static std::unique_ptr<RemoteBatchSource> Connect(
      double ratio, absl::Duration partition_wait = absl::Seconds(20)) {
    RemoteOptions options;
    options.servers = "@" + fleet_->list();
    options.partition_wait = partition_wait;
    options.cache_ratio = ratio;
    auto source = RemoteBatchSource::Connect(options);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  static ResolvedJob Resolved(const Manifest& manifest) {
    auto job = ResolveJob(Job(), manifest);
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }

  static BatchRequest Request(uint32_t batch, DType cast) {
    BatchRequest request;
    request.batch = batch;
    request.columns = DigestColumns(/*features=*/true, false);
    request.columns.feature_dtype = cast;
    return request;
  }

  // All batches of an epoch.
  static std::vector<Batch> Epoch(BatchSource& source,
                                  DType cast = DType::kNone) {
    const ResolvedJob job = Resolved(source.manifest());
    std::vector<Batch> batches;
    for (uint32_t b = 0; b < kBatches; ++b) {
      PendingFetch fetch(source, job, Request(b, cast));
      EXPECT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
      if (fetch.Wait().ok()) batches.push_back(*fetch.Wait());
    }
    return batches;
  }

  static FleetHarness* fleet_;
};
FleetHarness* CachedBatchesTest::fleet_ = nullptr;

std::string BytesOf(const Array& array) {
  return {reinterpret_cast<const char*>(array.data()), array.total_bytes()};
}

uint64_t FeatureBytes(const Batch& batch) {
  uint64_t bytes = 0;
  for (const NodeBlock& block : batch.nodes) {
    bytes += block.feature.total_bytes();
  }
  return bytes;
}

TEST_F(CachedBatchesTest, BatchesAreThoseWithoutCache) {
  const Schema& schema = fleet_->store()->schema();
  for (const DType cast :
       {DType::kNone, DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const std::vector<Batch> want = Epoch(*Connect(0), cast);
    for (const double ratio : {0.01, 0.3, 1.0}) {
      SCOPED_TRACE(::testing::Message()
                   << DTypeName(cast) << ", ratio " << ratio);
      const std::vector<Batch> got = Epoch(*Connect(ratio), cast);
      ASSERT_EQ(got.size(), want.size());
      for (size_t b = 0; b < got.size(); ++b) {
        EXPECT_EQ(DigestBatch(got[b], schema), DigestBatch(want[b], schema));
        for (size_t t = 0; t < want[b].nodes.size(); ++t) {
          EXPECT_EQ(BytesOf(got[b].nodes[t].feature),
                    BytesOf(want[b].nodes[t].feature));
        }
      }
    }
  }
}

TEST_F(CachedBatchesTest, OneSourceServesSeveralWireTypes) {
  const auto cached = Connect(0.5);
  const auto plain = Connect(0);
  for (const DType cast : {DType::kNone, DType::kFloat16, DType::kNone}) {
    const std::vector<Batch> got = Epoch(*cached, cast);
    const std::vector<Batch> want = Epoch(*plain, cast);
    ASSERT_EQ(got.size(), want.size());
    for (size_t b = 0; b < got.size(); ++b) {
      EXPECT_EQ(BytesOf(got[b].nodes[0].feature),
                BytesOf(want[b].nodes[0].feature));
    }
  }
}

TEST_F(CachedBatchesTest, AFullCacheLeavesNoFeaturesToSend) {
  const auto plain = Connect(0);
  uint64_t features = 0;
  for (const Batch& batch : Epoch(*plain)) features += FeatureBytes(batch);
  const auto cached = Connect(1);
  (void)Epoch(*cached);  // fills the cache
  const uint64_t before = cached->received_bytes();
  (void)Epoch(*cached);
  const uint64_t rest = cached->received_bytes() - before;
  // The difference is padding of arrays to multiples of 8 bytes.
  EXPECT_NEAR(static_cast<double>(rest + features),
              static_cast<double>(plain->received_bytes()),
              8.0 * kBatches * kParts * 4);
  // The cache holds all rows of the types that the job reaches, each once.
  const uint64_t held = sizeof(float) * (kPapers * kRowFloats + 2 * 3);
  EXPECT_EQ(before - rest, held);
}

TEST_F(CachedBatchesTest, CachingTheHottestRowsSavesMoreThanTheirShare) {
  const auto plain = Connect(0);
  uint64_t features = 0;
  for (const Batch& batch : Epoch(*plain)) features += FeatureBytes(batch);
  const auto cached = Connect(0.3);
  (void)Epoch(*cached);
  const uint64_t before = cached->received_bytes();
  (void)Epoch(*cached);
  const uint64_t rest = cached->received_bytes() - before;
  EXPECT_LT(rest + features * 3 / 10, plain->received_bytes());
}

TEST_F(CachedBatchesTest, JobsWithoutFeaturesFetchNoCache) {
  uint64_t received[2];
  for (const int cached : {0, 1}) {
    const auto source = Connect(cached);
    const ResolvedJob job = Resolved(source->manifest());
    BatchRequest request = Request(0, DType::kNone);
    request.columns.features = false;
    PendingFetch fetch(*source, job, request);
    ASSERT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
    received[cached] = source->received_bytes();
  }
  EXPECT_EQ(received[1], received[0]);
}

TEST_F(CachedBatchesTest, PartitionThatComesBackIsWaitedFor) {
  const auto source = Connect(0.5);
  const ResolvedJob job = Resolved(source->manifest());
  fleet_->StopServer(1);
  PendingFetch fetch(*source, job, Request(0, DType::kNone));
  fleet_->StartServer(1);
  EXPECT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
}

TEST_F(CachedBatchesTest, LostPartitionIsNamedAndClosingEndsTheWait) {
  const auto source = Connect(0.5, absl::Milliseconds(300));
  auto patient = Connect(0.5, absl::Hours(1));
  const ResolvedJob job = Resolved(source->manifest());
  fleet_->StopServer(1);
  PendingFetch waits(*patient, job, Request(0, DType::kNone));
  {
    PendingFetch first(*source, job, Request(0, DType::kNone));
    PendingFetch second(*source, job, Request(1, DType::kNone));
    for (PendingFetch* fetch : {&first, &second}) {
      const absl::Status status = fetch->Wait().status();
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_EQ(ErrorInfoOf(status).partition, 1);
      EXPECT_EQ(ReasonOf(status), "partition_lost");
    }
  }
  EXPECT_FALSE(waits.done());
  patient.reset();
  EXPECT_EQ(waits.Wait().status(),
            absl::CancelledError("the source was closed"));
  fleet_->StartServer(1);
  PendingFetch again(*source, job, Request(0, DType::kNone));
  EXPECT_TRUE(again.Wait().ok()) << again.Wait().status();
}

// Rows that have arrived are kept, however often the lost partition is asked.
TEST_F(CachedBatchesTest, ReceivedRowsAreNotRequestedAgain) {
  const auto source = Connect(1, absl::Milliseconds(500));
  const ResolvedJob job = Resolved(source->manifest());
  fleet_->StopServer(1);
  PendingFetch fetch(*source, job, Request(0, DType::kNone));
  EXPECT_TRUE(absl::IsUnavailable(fetch.Wait().status()))
      << fetch.Wait().status();
  const PartitionBook& papers = source->manifest().books[0];
  const uint64_t rows = kPapers - (papers.end(1) - papers.begin(1));
  EXPECT_EQ(source->received_bytes(), rows * kRowFloats * sizeof(float));
  fleet_->StartServer(1);
}

TEST_F(CachedBatchesTest, RatiosBeyondAllRowsAreRefused) {
  for (const double ratio : {-0.1, 1.01, std::nan("")}) {
    RemoteOptions options;
    options.servers = "@" + fleet_->list();
    options.cache_ratio = ratio;
    const absl::Status status = RemoteBatchSource::Connect(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cache_ratio"));
  }
}

}  // namespace
}  // namespace millrace
