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
#include "common/wire/error_info.h"
#include "tests/client/remote/citation_fleet.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/pending_fetch.h"

namespace millrace {
namespace {

using testing::BytesOf;
using testing::Epoch;
using testing::ExpectEqualEpochs;
using testing::FleetHarness;
using ::testing::HasSubstr;
using testing::kBatches;
using testing::kPapers;
using testing::kRowFloats;
using testing::PendingFetch;
using testing::Request;
using testing::Resolved;

constexpr int kParts = 3;

class CachedBatchesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    fleet_ = new FleetHarness(testing::CitationGraph(), kParts);
  }
  static void TearDownTestSuite() { delete fleet_; }

  static std::unique_ptr<RemoteBatchSource> Connect(
      double ratio, absl::Duration partition_wait = absl::Seconds(20)) {
    return testing::Connect({.servers = "@" + fleet_->list(),
                             .partition_wait = partition_wait,
                             .cache_ratio = ratio});
  }

  static FleetHarness* fleet_;
};
FleetHarness* CachedBatchesTest::fleet_ = nullptr;

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
      ExpectEqualEpochs(got, want, schema);
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
