// SPDX-License-Identifier: Apache-2.0
// Batches, and the bytes they cost, with a feature cache on a GPU.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/remote_batch_source.h"
#include "common/base/mutex.h"
#include "tests/client/remote/citation_fleet.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_device_cache.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/known_memory.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/scripted_sampler.h"

namespace millrace {
namespace {

using testing::BytesOf;
using testing::Epoch;
using testing::ExpectEqualEpochs;
using testing::FakeDeviceCache;
using testing::FleetHarness;
using testing::kAuthorsType;
using testing::KnownMemory;
using testing::kPapersType;
using testing::PendingFetch;
using testing::Request;
using testing::Resolved;
using testing::ScriptedSampler;

// The batches with all features on the host.
std::vector<Batch> OnHost(std::vector<Batch> batches) {
  for (Batch& batch : batches) {
    for (NodeBlock& block : batch.nodes) {
      block.feature = FakeDeviceCache::OnHost(block.feature);
    }
  }
  return batches;
}

class DeviceBatchesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    fleet_ = new FleetHarness(testing::CitationGraph(), /*parts=*/3);
  }
  static void TearDownTestSuite() { delete fleet_; }

  static const Schema& schema() { return fleet_->store()->schema(); }

  // A source that keeps rows on the host if `rows` is null.
  static std::unique_ptr<RemoteBatchSource> Connect(
      double ratio, std::shared_ptr<DeviceCache> rows) {
    return testing::Connect({.servers = "@" + fleet_->list(),
                             .partition_wait = absl::Seconds(20),
                             .cache_ratio = ratio,
                             .device_cache = std::move(rows)});
  }
  static std::vector<Batch> PlainEpoch(DType cast = DType::kNone) {
    return Epoch(*Connect(0, nullptr), cast);
  }

  static FleetHarness* fleet_;

  const std::shared_ptr<FakeDeviceCache> rows_ =
      std::make_shared<FakeDeviceCache>();
  const std::shared_ptr<KnownMemory> memory_ =
      std::make_shared<KnownMemory>(/*device=*/0);
};
FleetHarness* DeviceBatchesTest::fleet_ = nullptr;

TEST_F(DeviceBatchesTest, BatchesAreThoseWithoutCache) {
  for (const DType cast :
       {DType::kNone, DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const std::vector<Batch> want = PlainEpoch(cast);
    for (const double ratio : {0.3, 1.0}) {
      SCOPED_TRACE(::testing::Message()
                   << DTypeName(cast) << ", ratio " << ratio);
      const std::vector<Batch> got =
          Epoch(*Connect(ratio, rows_), cast, memory_);
      for (const Batch& batch : got) {
        EXPECT_EQ(batch.nodes[kPapersType].feature.device(), 0);
        EXPECT_FALSE(batch.nodes[kAuthorsType].feature.present());
        EXPECT_TRUE(batch.nodes[kPapersType].id.on_host());
      }
      ExpectEqualEpochs(OnHost(got), want, schema());
    }
  }
}

TEST_F(DeviceBatchesTest, FeaturesOfTypesWithoutHeldRowsStayOnTheHost) {
  const std::vector<Batch> got =
      Epoch(*Connect(0.01, rows_), DType::kNone, memory_);
  EXPECT_EQ(rows_->held_rows(), 0);
  EXPECT_EQ(rows_->merges(), 0);
  for (const Batch& batch : got) {
    EXPECT_TRUE(memory_->Owns(batch.nodes[kPapersType].feature.data()));
  }
  ExpectEqualEpochs(got, PlainEpoch(), schema());
}

TEST_F(DeviceBatchesTest, CostsTheBytesOfACacheOnTheHost) {
  for (const double ratio : {0.3, 1.0}) {
    const auto on_host = Connect(ratio, nullptr);
    const auto on_device = Connect(ratio, rows_);
    for (int epoch = 0; epoch < 2; ++epoch) {
      (void)Epoch(*on_host);
      (void)Epoch(*on_device, DType::kNone, memory_);
      EXPECT_EQ(on_device->received_bytes(), on_host->received_bytes());
    }
  }
  EXPECT_EQ(rows_->written_rows(), rows_->held_rows());
}

TEST_F(DeviceBatchesTest, HoldsEachRowOnce) {
  const auto source = Connect(1, rows_);
  (void)Epoch(*source, DType::kNone, memory_);
  (void)Epoch(*source, DType::kFloat32, memory_);  // as stored
  // Papers and venues.
  EXPECT_EQ(rows_->held_rows(), testing::kPapers + 2);
  EXPECT_EQ(rows_->written_rows(), rows_->held_rows());
}

TEST_F(DeviceBatchesTest, RequestsForElsewhereGetWholeBatches) {
  const auto plain = Connect(0, nullptr);
  const std::vector<Batch> want = Epoch(*plain);
  const std::shared_ptr<ArrayMemory> elsewhere[] = {
      nullptr, std::make_shared<KnownMemory>(/*device=*/1)};
  for (const std::shared_ptr<ArrayMemory>& memory : elsewhere) {
    const auto source = Connect(1, rows_);
    ExpectEqualEpochs(Epoch(*source, DType::kNone, memory), want, schema());
    EXPECT_EQ(source->received_bytes(), plain->received_bytes());
    EXPECT_EQ(rows_->held_rows(), 0);
  }
  // Also when there are rows on the GPU already.
  const auto source = Connect(1, rows_);
  (void)Epoch(*source, DType::kNone, memory_);
  const int merges = rows_->merges();
  EXPECT_GT(merges, 0);
  for (const std::shared_ptr<ArrayMemory>& memory : elsewhere) {
    ExpectEqualEpochs(Epoch(*source, DType::kNone, memory), want, schema());
  }
  EXPECT_EQ(rows_->merges(), merges);
}

TEST_F(DeviceBatchesTest, JobsWithoutFeaturesHoldNothing) {
  const auto source = Connect(1, rows_);
  const ResolvedJob job = Resolved(source->manifest());
  BatchRequest request = Request(0, DType::kNone, memory_);
  request.columns.features = false;
  PendingFetch fetch(*source, job, request);
  ASSERT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
  EXPECT_EQ(rows_->held_rows(), 0);
}

TEST_F(DeviceBatchesTest, PartitionThatComesBackIsWaitedFor) {
  const auto source = Connect(0.5, rows_);
  (void)Epoch(*source, DType::kNone, memory_);
  const ResolvedJob job = Resolved(source->manifest());
  fleet_->StopServer(1);
  PendingFetch fetch(*source, job, Request(1, DType::kNone, memory_));
  fleet_->StartServer(1);
  ASSERT_TRUE(fetch.Wait().ok()) << fetch.Wait().status();
  EXPECT_EQ(BytesOf(FakeDeviceCache::OnHost(
                fetch.Wait()->nodes[kPapersType].feature)),
            BytesOf(PlainEpoch()[1].nodes[kPapersType].feature));
}

// Each server breaks off every other stream after its last frame, when others
// have been asked for their rows.
TEST_F(DeviceBatchesTest, AttemptsThatAreRepeatedMoveNothing) {
  std::vector<std::unique_ptr<ScriptedSampler>> servers(3);
  std::string list;
  for (int part = 0; part < 3; ++part) {
    std::unique_ptr<ScriptedSampler>& own = servers[part];
    own = std::make_unique<ScriptedSampler>(
        fleet_->Stub(part), [&own](int number, const v1::SampleRequest& request,
                                   ScriptedSampler::Writer& out) {
          const grpc::Status passed = own->Pass(request, out);
          if (number % 2 == 1) return passed;
          return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken off");
        });
    list += (part > 0 ? "," : "") + own->address();
  }
  auto source = testing::Connect(
      {.servers = list, .cache_ratio = 0.3, .device_cache = rows_});
  ExpectEqualEpochs(OnHost(Epoch(*source, DType::kNone, memory_)), PlainEpoch(),
                    schema());
  // No venue is held.
  EXPECT_EQ(rows_->merges(), static_cast<int>(testing::kBatches));
  int calls = 0;
  for (const auto& server : servers) calls += server->calls();
  EXPECT_GT(calls, static_cast<int>(testing::kBatches));
  source.reset();
}

TEST_F(DeviceBatchesTest, AFailedGpuFailsBatches) {
  const auto source = Connect(1, rows_);
  const ResolvedJob job = Resolved(source->manifest());
  const absl::Status lost = absl::UnavailableError("GPU 0 has failed");
  for (const bool writing : {true, false}) {
    rows_->FailWrite(writing ? lost : absl::OkStatus());
    rows_->FailMerge(lost);
    PendingFetch fetch(*source, job, Request(0, DType::kNone, memory_));
    EXPECT_EQ(fetch.Wait().status(), lost);
    EXPECT_EQ(rows_->merges() == 0, writing);
  }
}

// The source waits for a batch that the GPU is at work for, and for others
// that wait for the GPU.
TEST_F(DeviceBatchesTest, ClosingWaitsForTheGpu) {
  Notification gate;
  auto source = Connect(1, rows_);
  const ResolvedJob job = Resolved(source->manifest());
  rows_->HoldMerge(&gate);
  std::vector<std::unique_ptr<PendingFetch>> fetches;
  for (uint32_t b = 0; b < testing::kBatches; ++b) {
    fetches.push_back(std::make_unique<PendingFetch>(
        *source, job, Request(b, DType::kNone, memory_)));
  }
  ASSERT_TRUE(testing::Eventually([&] { return rows_->merges() == 2; }));
  Notification closed;
  std::thread closing([&source, &closed] {
    source.reset();
    closed.Notify();
  });
  EXPECT_FALSE(closed.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
  gate.Notify();
  closing.join();
  for (const auto& fetch : fetches) {
    ASSERT_TRUE(fetch->done());
    EXPECT_TRUE(fetch->Wait().ok() || absl::IsCancelled(fetch->Wait().status()))
        << fetch->Wait().status();
  }
}

// Batches stay, also when the source and what has kept their rows are gone.
TEST_F(DeviceBatchesTest, BatchesOutliveTheSource) {
  auto rows = std::make_shared<FakeDeviceCache>();
  auto source = Connect(1, rows);
  std::vector<Batch> got = Epoch(*source, DType::kNone, memory_);
  const std::weak_ptr<FakeDeviceCache> left = rows;
  rows.reset();
  source.reset();
  EXPECT_TRUE(left.expired());
  ExpectEqualEpochs(OnHost(std::move(got)), PlainEpoch(), schema());
}

}  // namespace
}  // namespace millrace
