// SPDX-License-Identifier: Apache-2.0
// Batches whose topology a CUDA device makes, compared with those of the CPU.
#include <cuda_runtime_api.h>
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
#include "common/cuda/runtime/device_memory.h"
#include "common/cuda/sample/cuda_topology_sampler.h"
#include "common/sample/batch_arrays.h"
#include "common/sample/gather.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/tier/load_store.h"
#include "tests/support/known_memory.h"
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

// The same array on the host.
Array OnHost(const Array& array) {
  if (array.on_host()) return array;
  Array copy = Array::Allocate(array.dtype(), array.shape());
  EXPECT_EQ(cudaMemcpy(copy.mutable_data(), array.data(), array.total_bytes(),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  return copy;
}

// Expects topology of edges on one device, features on another, and all else on
// the host. Returns the batch with all of them on the host.
Batch ExpectOn(int device, const Batch& batch, int features = kHost) {
  Batch copy = batch;
  for (const BatchArray& array : BatchArrays()) {
    using Kind = ArrayKind;
    const bool stays = array.kind == Kind::kIndptr ||
                       array.kind == Kind::kNeighbor ||
                       array.kind == Kind::kEdgeId;
    const bool is_feature =
        array.kind == Kind::kNodeFeature || array.kind == Kind::kEdgeFeature;
    const int place = stays ? device : is_feature ? features : kHost;
    const int count =
        CountOf(array.group, batch.nodes.size(), batch.edges.size());
    for (int i = 0; i < count; ++i) {
      const Array from = array.Get(batch, i);
      if (!from.present()) continue;
      // Where there is nothing to read, the CPU has read it.
      const bool has_place = !is_feature || from.rows() > 0;
      EXPECT_EQ(from.device(), has_place ? place : kHost) << array.name;
      if (!from.on_host()) array.Set(copy, i, OnHost(from));
    }
  }
  return copy;
}

// Checks what stands for arrays that the host cannot read. `expected` is the
// same batch on the host.
void ExpectHostParts(const Store& store, const Batch& batch,
                     const Batch& expected) {
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    SCOPED_TRACE("relation " + std::to_string(r));
    const EdgeBlock& block = batch.edges[r];
    const EdgeBlock& want = expected.edges[r];
    const Relation& relation = store.schema().relations[r];
    const std::vector<uint32_t>& hop_offsets =
        expected.nodes[ListOwnerType(relation, batch.direction)].hop_offsets;
    std::vector<uint32_t> ends;
    for (int hop = 0; hop <= batch.hops; ++hop) {
      ends.push_back(want.indptr.As<uint32_t>()[hop_offsets[hop]]);
    }
    EXPECT_EQ(block.list_ends, ends);
    if (!want.feature_row.present()) {
      EXPECT_TRUE(block.feature_parts.empty());
      continue;
    }
    EXPECT_EQ(block.feature_parts, FeatureOwners(expected, relation, want,
                                                 store.book(relation.dst)));
  }
}

bool HasTwoDevices() {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  return count > 1;
}

// Devices that sample, and the one on which batches are to stay.
struct Gpus {
  std::vector<int> devices = {0};
  int stay = kHost;
};

// With batches on the host, on the only GPU, and on the second of two.
std::vector<Gpus> AllGpus() {
  std::vector<Gpus> all = {{{0}, kHost}, {{0}, 0}};
  if (HasTwoDevices()) all.push_back({{0, 1}, 1});
  return all;
}

// A graph whose batches are made on devices and on the CPU.
class BothPlaces {
 public:
  explicit BothPlaces(const TestGraph& graph, int parts, Gpus gpus = {},
                      DeviceFallback fallback = DeviceFallback::kForbid)
      : BothPlaces(TestStore(graph, parts).Open(), std::move(gpus), fallback) {}
  BothPlaces(std::shared_ptr<const Store> store, Gpus gpus,
             DeviceFallback fallback = DeviceFallback::kForbid)
      : gpus_(std::move(gpus)),
        store_(std::move(store)),
        cpu_(LocalBatchSource::Create(store_, 1).value()) {
    std::vector<cuda::SamplingDevice> devices;
    for (const int gpu : gpus_.devices) {
      EXPECT_TRUE(cuda::OpenDevice(gpu).ok());
      cuda::SamplingDevice& device = devices.emplace_back();
      device.graph =
          cuda::DeviceGraph::Create(store_, gpu, cuda::ColumnPlace::kDevice)
              .value();
      device.members = std::make_unique<cuda::DeviceMembers>(gpu);
      device.workers = std::make_unique<cuda::DeviceWorkers>(gpu);
    }
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
    return job.ok() ? device_->Make(*job, Staying(request)) : job.status();
  }
  void ExpectSame(const JobSpec& spec, const BatchRequest& request) const {
    const auto job = ResolveJob(spec, manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    const auto expected = cpu_->Make(*job, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto batch = device_->Make(*job, Staying(request));
    ASSERT_TRUE(batch.ok()) << batch.status();
    const bool stays = gpus_.stay != kHost && cuda::ReasonForHost(*job).empty();
    ExpectEqualArrays(ExpectOn(stays ? gpus_.stay : kHost, *batch), *expected);
    if (stays) ExpectHostParts(*store_, *batch, *expected);
  }
  void ExpectSameError(const JobSpec& spec, const BatchRequest& request) const {
    const auto job = ResolveJob(spec, manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    const absl::Status expected = cpu_->Make(*job, request).status();
    EXPECT_FALSE(expected.ok());
    EXPECT_EQ(device_->Make(*job, Staying(request)).status(), expected);
  }

 private:
  BatchRequest Staying(BatchRequest request) const {
    if (gpus_.stay != kHost) {
      request.memory = std::make_shared<KnownMemory>(gpus_.stay);
    }
    return request;
  }

  const Gpus gpus_;
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
  for (const Gpus& gpus : AllGpus()) {
    for (const int parts : {0, 3}) {
      if (gpus.devices.size() > 1 && parts == 0) continue;  // saves time
      const BothPlaces places(RandomGraph(4 + parts), parts, gpus,
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
}

void ExpectSameOfEdgeSeeds(const TestGraph& graph, const BothPlaces& places) {
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

TEST(DeviceTopologySamplerTest, MakesBatchesOfEdgeSeeds) {
  const TestGraph graph = RandomGraph(2);
  for (const Gpus& gpus : AllGpus()) {
    for (const int parts : {0, 2}) {
      ExpectSameOfEdgeSeeds(graph, BothPlaces(graph, parts, gpus));
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
  for (const Gpus& gpus : AllGpus()) {
    const BothPlaces places(graph, 2, gpus);
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
}

// The CPU says what is wrong with a split.
TEST(DeviceTopologySamplerTest, LeavesDamagedSplitsToTheCpu) {
  const TestStore store(RandomGraph(3));
  // The last id becomes one beyond the nodes.
  std::fstream(store.path() / "splits/item/train/id.npy",
               std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-4, std::ios::end)
      .write("\xFF\xFF\xFF\x7F", 4);
  for (const Gpus& gpus : AllGpus()) {
    const BothPlaces places(store.Open(), gpus);
    JobSpec spec = ExplicitJob({3}, "item");
    spec.train_graph = "train";
    places.ExpectSameError(spec, RequestFor(Seeds{{0, 8}, {}}));
  }
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
  for (const Gpus& gpus : AllGpus()) {
    const BothPlaces places(RandomGraph(5), 2, gpus);
    places.ExpectSame(ExplicitJob({2, 2}, "item"), RequestFor({}));
  }
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

// What the options say of graph, features and devices; where a batch is wanted.
struct Loaded {
  MemoryOptions options;
  int wanted = 0;
  int stays = 0;  // where its edges are
  int features = 0;
};

void ExpectWholeBatches(const TestStore& store, const Loaded& loaded) {
  const auto cpu = LocalBatchSource::Create(store.Open(), 1).value();
  LoadedStore opened = LoadStore(store.Open(), loaded.options).value();
  const auto source = LocalBatchSource::Create(std::move(opened.store), 1,
                                               std::move(opened.sampler),
                                               std::move(opened.features))
                          .value();
  JobSpec spec = ExplicitJob({3, 2}, "item");
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    spec.direction = direction;
    const auto job = ResolveJob(spec, source->manifest());
    ASSERT_TRUE(job.ok()) << job.status();
    BatchRequest request = RequestFor(Seeds{{1, 2, 3}, {}});
    const auto expected = cpu->Make(*job, request);
    ASSERT_TRUE(expected.ok()) << expected.status();
    request.memory = std::make_shared<KnownMemory>(loaded.wanted);
    const auto batch = source->Make(*job, request);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ExpectEqualArrays(ExpectOn(loaded.stays, *batch, loaded.features),
                      *expected);
  }
}

TEST(DeviceTopologySamplerTest, LeavesWholeBatchesWhereTheyAreWanted) {
  const TestStore store(RandomGraph(9), 2);
  constexpr MemoryTier kCuda = MemoryTier::kCuda, kRam = MemoryTier::kRam,
                       kAuto = MemoryTier::kAuto;
  std::vector<Loaded> all = {
      {{.graph = kCuda, .features = kCuda}, 0, 0, 0},
      {{.graph = kAuto, .features = kAuto}, 0, 0, 0},
      {{.graph = kCuda, .features = kRam}, 0, 0, kHost},
      {{.graph = kRam, .features = kCuda}, 0, kHost, 0},
      // A device that neither samples nor reads.
      {{.graph = kCuda, .features = kCuda}, 1, kHost, kHost}};
  if (HasTwoDevices()) {
    for (const int gpu : {0, 1}) {
      all.push_back(
          {{.graph = kCuda, .features = kCuda, .gpus = {0, 1}}, gpu, gpu, gpu});
    }
  }
  for (const Loaded& loaded : all) ExpectWholeBatches(store, loaded);
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
  for (const Gpus& gpus : AllGpus()) {
    const BothPlaces places(RandomGraph(7), 2, gpus);
    places.ExpectSame(ExplicitJob({2, 3, 2}, "item"),
                      RequestFor(Seeds{{1, 2}, {}}));
    EXPECT_EQ(places.waits(), 1);
  }
}

TEST(DeviceTopologySamplerTest, WaitsOnceMoreForAHopOfAllNeighbors) {
  for (const Gpus& gpus : AllGpus()) {
    const BothPlaces places(RandomGraph(7), 2, gpus);
    places.ExpectSame(ExplicitJob({2, -1, 2}, "item"),
                      RequestFor(Seeds{{1, 2}, {}}));
    EXPECT_EQ(places.waits(), 2);
  }
}

TEST(DeviceTopologySamplerTest, SamplesInManyThreads) {
  const BothPlaces places(RandomGraph(8), 2, AllGpus().back());
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

// Bytes of memory of a device that are free, besides what streams keep.
uint64_t FreeBytes(int device) {
  cuda::TrimMemory(device);
  return cuda::MemoryUseOf(device).value().free_bytes;
}

TEST(DeviceTopologySamplerTest, BatchesMayOutliveIt) {
  ASSERT_TRUE(cuda::OpenDevice(0).ok());
  const std::shared_ptr<const Store> store =
      TestStore(RandomGraph(9), 2).Open();
  const JobSpec spec = ExplicitJob({2, 3}, "item");
  const BatchRequest request = RequestFor(Seeds{{1, 2}, {}});
  const auto make = [&] {
    const BothPlaces places(store, {.devices = {0}, .stay = 0});
    return places.OnDevice(spec, request).value();
  };
  make();  // kernels, too, take memory when they are first used
  const uint64_t before = FreeBytes(0);
  {
    const Batch first = make();
    const Batch second = make();
    EXPECT_LT(FreeBytes(0), before);
    ExpectEqualArrays(ExpectOn(0, first), ExpectOn(0, second));
  }
  EXPECT_EQ(FreeBytes(0), before) << "memory was not freed";
}

TEST(DeviceTopologySamplerTest, SaysThatABatchDoesNotFit) {
  const BothPlaces places(RandomGraph(7), 2, {.devices = {0}, .stay = 0});
  const JobSpec spec = ExplicitJob({1000, 1000}, "item");
  const BatchRequest request = RequestFor(Seeds{{1, 2, 3, 4, 5}, {}});
  {
    const cuda::DeviceBlock taken =
        cuda::AllocateDevice(0, FreeBytes(0) - 100'000, "a test").value();
    const absl::Status status = places.OnDevice(spec, request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("memory of CUDA device 0, of which "));
  }
  places.ExpectSame(spec, request);
}

}  // namespace
}  // namespace millrace::testing
