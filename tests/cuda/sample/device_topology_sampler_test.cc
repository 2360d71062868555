// SPDX-License-Identifier: Apache-2.0
// Batches whose topology a CUDA device makes, compared with those of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/cuda/runtime/device.h"
#include "common/cuda/sample/cuda_topology_sampler.h"
#include "common/sample/batch_arrays.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/tier/load_store.h"
#include "tests/support/sampled.h"
#include "tests/support/test_store.h"
#include "tests/support/variants.h"

namespace millrace::testing {
namespace {

using cuda::CudaTopologySampler;

void ExpectEqualArrays(const Batch& batch, const Batch& expected) {
  ASSERT_EQ(batch.nodes.size(), expected.nodes.size());
  ASSERT_EQ(batch.edges.size(), expected.edges.size());
  for (const BatchArray& array : BatchArrays()) {
    const int count =
        CountOf(array.group, batch.nodes.size(), batch.edges.size());
    for (int i = 0; i < count; ++i) {
      SCOPED_TRACE(std::string(array.name) + " " + std::to_string(i));
      const Array got = array.Get(batch, i);
      const Array want = array.Get(expected, i);
      ASSERT_EQ(got.dtype(), want.dtype());
      ASSERT_EQ(got.shape(), want.shape());
      if (want.total_bytes() == 0) continue;
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.total_bytes()), 0);
    }
  }
}

// A graph whose batches are made on the device and on the CPU.
class BothPlaces {
 public:
  explicit BothPlaces(const TestGraph& graph, int parts,
                      DeviceFallback fallback = DeviceFallback::kForbid)
      : BothPlaces(TestStore(graph, parts).Open(), fallback) {}
  BothPlaces(std::shared_ptr<const Store> store, DeviceFallback fallback)
      : store_(std::move(store)),
        cpu_(LocalBatchSource::Create(store_, 1).value()) {
    EXPECT_TRUE(cuda::OpenDevice(0).ok());
    std::vector<cuda::SamplingDevice> devices(1);
    devices[0].graph =
        cuda::DeviceGraph::Create(store_, 0, cuda::ColumnPlace::kDevice)
            .value();
    devices[0].members = std::make_unique<cuda::DeviceMembers>(0);
    devices[0].workers = std::make_unique<cuda::DeviceWorkers>(0);
    devices_ = std::make_shared<cuda::SamplingDevices>(std::move(devices));
    device_ = LocalBatchSource::Create(
                  store_, 1,
                  std::make_unique<CudaTopologySampler>(devices_, fallback))
                  .value();
  }

  const Manifest& manifest() const { return store_->manifest(); }
  HopCounts counts() const { return device_->counts()->hops; }
  uint64_t waits() const { return devices_->waits(); }

  absl::StatusOr<Batch> OnDevice(const JobSpec& spec,
                                 const BatchRequest& request) const {
    const auto job = ResolveJob(spec, manifest());
    return job.ok() ? device_->Make(*job, request) : job.status();
  }
  void ExpectSame(const JobSpec& spec, const BatchRequest& request) const {
    const auto job = ResolveJob(spec, manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    const auto expected = cpu_->Make(*job, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto batch = device_->Make(*job, request);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ExpectEqualArrays(*batch, *expected);
  }
  void ExpectSameError(const JobSpec& spec, const BatchRequest& request) const {
    const auto job = ResolveJob(spec, manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    const absl::Status expected = cpu_->Make(*job, request).status();
    EXPECT_FALSE(expected.ok());
    EXPECT_EQ(device_->Make(*job, request).status(), expected);
  }

 private:
  const std::shared_ptr<const Store> store_;
  const std::unique_ptr<LocalBatchSource> cpu_;
  std::shared_ptr<cuda::SamplingDevices> devices_;
  std::unique_ptr<LocalBatchSource> device_;
};

BatchRequest RequestFor(ExplicitSeeds seeds, uint32_t batch = 0) {
  return {.epoch = 3,
          .batch = batch,
          .explicit_seeds = std::move(seeds),
          .columns = DigestColumns(/*features=*/true, /*edge_features=*/true)};
}

TEST(DeviceTopologySamplerTest, MakesTheBatchesOfTheCpu) {
  for (const int parts : {0, 3}) {
    const BothPlaces places(RandomGraph(4 + parts), parts,
                            DeviceFallback::kAllow);
    uint64_t device = 0, host = 0;
    for (const Variant& variant : SamplingVariants()) {
      SCOPED_TRACE(variant.name);
      const JobSpec spec = variant.Job();
      const auto job = ResolveJob(spec, places.manifest());
      ASSERT_TRUE(job.ok()) << job.status();
      for (const Seeds& seeds : SeedsFor(spec)) {
        BatchRequest request = RequestFor(seeds);
        request.columns.edge_features = variant.has_edge_ids();
        places.ExpectSame(spec, request);
        (cuda::ReasonForHost(*job).empty() ? device : host) +=
            static_cast<uint64_t>(job->hops);
      }
    }
    EXPECT_GE(device, 40);
    EXPECT_EQ(places.counts().device, device);
    EXPECT_EQ(places.counts().host, host);
  }
}

TEST(DeviceTopologySamplerTest, MakesBatchesOfEdgeSeeds) {
  const TestGraph graph = RandomGraph(2);
  for (const int parts : {0, 2}) {
    const BothPlaces places(graph, parts);
    for (const Negatives& negatives :
         {Negatives{}, Negatives{NegativeMode::kTriplet, 3},
          Negatives{NegativeMode::kBinary, 1.5},
          Negatives{NegativeMode::kShared, 4},
          Negatives{NegativeMode::kInBatch, 1}}) {
      for (const bool disjoint : {false, true}) {
        if (disjoint && negatives.mode == NegativeMode::kShared) continue;
        JobSpec spec = ExplicitJob({-1, 2}, "user__buys__item");
        spec.seed_kind = SeedKind::kEdge;
        spec.negatives = negatives;
        spec.disjoint = disjoint;
        SCOPED_TRACE(static_cast<int>(negatives.mode));
        ExplicitSeeds pairs;
        for (size_t i = 0; i < 9; ++i) {
          pairs.ids.push_back(graph.relations[0].edges[i].first);
          pairs.dst.push_back(graph.relations[0].edges[i].second);
        }
        places.ExpectSame(spec, RequestFor(pairs, 2));
      }
    }
  }
}

// The first edges of a relation, with their times.
ExplicitSeeds FirstEdges(const TestRelation& relation, size_t count) {
  ExplicitSeeds seeds;
  for (size_t e = 0; e < count; ++e) {
    seeds.ids.push_back(relation.edges[e].first);
    seeds.dst.push_back(relation.edges[e].second);
    seeds.times.push_back(relation.time[e]);
  }
  return seeds;
}

TEST(DeviceTopologySamplerTest, MakesBatchesWithoutExcludedEdges) {
  const TestGraph graph = RandomGraph(3);
  const BothPlaces places(graph, 2);
  for (const char* train_graph : {"", "train"}) {
    for (const TemporalStrategy temporal :
         {TemporalStrategy::kNone, TemporalStrategy::kUniform}) {
      JobSpec spec = ExplicitJob({3, 2}, "user__buys__item");
      spec.seed_kind = SeedKind::kEdge;
      spec.exclude = ExcludeSeedEdges::kSelf;
      spec.negatives = {NegativeMode::kTriplet, 1};
      spec.train_graph = train_graph;
      spec.temporal = temporal;
      spec.disjoint = temporal != TemporalStrategy::kNone;
      places.ExpectSame(spec, RequestFor(FirstEdges(graph.relations[0], 9)));
    }
  }
  EXPECT_EQ(places.counts().host, 0);
}

// The CPU says what is wrong with a split.
TEST(DeviceTopologySamplerTest, LeavesDamagedSplitsToTheCpu) {
  const TestStore store(RandomGraph(3));
  // The last id becomes one beyond the nodes.
  std::fstream(store.path() / "splits/item/train/id.npy",
               std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-4, std::ios::end)
      .write("\xFF\xFF\xFF\x7F", 4);
  const BothPlaces places(store.Open(), DeviceFallback::kForbid);
  JobSpec spec = ExplicitJob({3}, "item");
  spec.train_graph = "train";
  places.ExpectSameError(spec, RequestFor(Seeds{{0, 8}, {}}));
}

TEST(DeviceMembersTest, KeepsTheSetsOfSplits) {
  const TestStore store(RandomGraph(3));
  const auto opened = store.Open();
  ASSERT_TRUE(cuda::OpenDevice(0).ok());
  cuda::DeviceMembers members(0);
  const auto items = members.Find(*opened, 1, "train");
  ASSERT_TRUE(items.ok()) << items.status();
  EXPECT_NE(*items, nullptr);
  EXPECT_EQ(members.Find(*opened, 1, "train").value(), *items);
  EXPECT_EQ(members.Find(*opened, 0, "train").value(), nullptr);
  EXPECT_EQ(members.Find(*opened, 1, "test").value(), nullptr);
}

TEST(DeviceTopologySamplerTest, MakesBatchesWithoutSeeds) {
  const BothPlaces places(RandomGraph(5), 2);
  places.ExpectSame(ExplicitJob({2, 2}, "item"), RequestFor({}));
}

TEST(DeviceTopologySamplerTest, RefusesWhatHasNoKernelsIfAsked) {
  const BothPlaces places(RandomGraph(6), 2);
  const JobSpec plain = ExplicitJob({2}, "item");
  JobSpec ppr = plain;
  ppr.method = SampleMethod::kPpr;
  ppr.walks = 2;
  ppr.walk_length = 2;
  ppr.metapath = {"item__cites__item"};
  JobSpec induced = plain;
  induced.method = SampleMethod::kInduced;
  JobSpec wide = plain;
  wide.fanouts = {1025};
  for (const auto& [spec, words] :
       {std::pair(ppr, "ppr"), std::pair(induced, "induced subgraphs"),
        std::pair(wide, "fanouts above 1024")}) {
    BatchRequest request = RequestFor(Seeds{{0, 8}, {}});
    request.columns.edge_features = false;
    const absl::Status status = places.OnDevice(spec, request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(words));
  }
  EXPECT_EQ(places.counts().host, 0);
}

TEST(DeviceTopologySamplerTest, SamplesFromPinnedMemory) {
  const TestStore store(RandomGraph(9), 2);
  const auto cpu = LocalBatchSource::Create(store.Open(), 1).value();
  LoadedStore loaded =
      LoadStore(store.Open(), {.graph = MemoryTier::kPinned,
                               .features = MemoryTier::kPinned,
                               .fallback = DeviceFallback::kForbid})
          .value();
  const auto device = LocalBatchSource::Create(std::move(loaded.store), 1,
                                               std::move(loaded.sampler))
                          .value();
  for (const bool weighted : {false, true}) {
    JobSpec spec = ExplicitJob({3, -1}, "item");
    spec.weighted = weighted;
    const auto job = ResolveJob(spec, device->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    const BatchRequest request = RequestFor(Seeds{{1, 2, 3}, {}});
    const auto batch = device->Make(*job, request);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ExpectEqualArrays(*batch, cpu->Make(*job, request).value());
  }
}

TEST(DeviceTopologySamplerTest, RefusesWhatTheCpuRefuses) {
  TestGraph graph = RandomGraph(10);
  for (TestType& type : graph.types) type.time.clear();
  const BothPlaces places(graph, 0);
  JobSpec spec = ExplicitJob({2}, "item");
  spec.temporal = TemporalStrategy::kUniform;
  places.ExpectSameError(spec, RequestFor(Seeds{{1, 2}, {}}));
}

TEST(DeviceTopologySamplerTest, WaitsOnceForABatch) {
  const BothPlaces places(RandomGraph(7), 2);
  places.ExpectSame(ExplicitJob({2, 3, 2}, "item"),
                    RequestFor(Seeds{{1, 2}, {}}));
  EXPECT_EQ(places.waits(), 1);
}

TEST(DeviceTopologySamplerTest, WaitsOnceMoreForAHopOfAllNeighbors) {
  const BothPlaces places(RandomGraph(7), 2);
  places.ExpectSame(ExplicitJob({2, -1, 2}, "item"),
                    RequestFor(Seeds{{1, 2}, {}}));
  EXPECT_EQ(places.waits(), 2);
}

TEST(DeviceTopologySamplerTest, SamplesInManyThreads) {
  const BothPlaces places(RandomGraph(8), 2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&places, t] {
      for (uint32_t batch = 0; batch < 3; ++batch) {
        places.ExpectSame(ExplicitJob({2, 2}, "item"),
                          RequestFor(Seeds{{t, 8, 13}, {}}, batch));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(places.counts().device, 18);
}

}  // namespace
}  // namespace millrace::testing
