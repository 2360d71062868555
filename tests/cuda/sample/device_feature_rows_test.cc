// SPDX-License-Identifier: Apache-2.0
// Feature rows that CUDA devices gather, compared with those of the CPU.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_memory.h"
#include "common/cuda/runtime/device_pool.h"
#include "common/cuda/runtime/peer_access.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/sample/cuda_feature_rows.h"
#include "common/sample/gather.h"
#include "tests/support/known_memory.h"
#include "tests/support/test_store.h"

namespace millrace::testing {
namespace {

using cuda::CudaFeatureRows;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Node types; the last has no features.
constexpr TypeIndex kFloats = 0, kBytes = 1, kHalves = 2, kDoubles = 3,
                    kBare = 4;
// Relations; the last has no features.
constexpr RelationIndex kFloatEdges = 0, kByteEdges = 1, kBareEdges = 2;

// Elements whose bytes differ from row to row.
Array Elements(DType dtype, int64_t rows, int64_t dims) {
  Array elements = Array::Allocate(dtype, {rows, dims});
  for (size_t i = 0; i < elements.total_bytes(); ++i) {
    elements.mutable_data()[i] = static_cast<std::byte>(i * 37 + i / 251);
  }
  return elements;
}

// Types and relations whose rows have 12, 7, 10 and 48, and 8 and 3 bytes.
TestGraph OddRows() {
  TestGraph graph;
  graph.types = {
      {.name = "floats",
       .count = 41,
       .feature = Elements(DType::kFloat32, 41, 3)},
      {.name = "bytes", .count = 23, .feature = Elements(DType::kUint8, 23, 7)},
      {.name = "halves",
       .count = 30,
       .feature = Elements(DType::kFloat16, 30, 5)},
      {.name = "doubles",
       .count = 19,
       .feature = Elements(DType::kFloat64, 19, 6)},
      {.name = "bare", .count = 5}};
  std::vector<std::pair<int64_t, int64_t>> edges;
  for (int64_t e = 0; e < 60; ++e) edges.emplace_back(e % 41, e * 7 % 23);
  graph.relations = {
      {.src = "floats",
       .dst = "bytes",
       .edges = edges,
       .feature = Elements(DType::kFloat32, 60, 2)},
      {.src = "floats",
       .name = "also",
       .dst = "bytes",
       .edges = edges,
       .feature = Elements(DType::kUint8, 60, 3)},
      {.src = "floats", .name = "bare", .dst = "bytes", .edges = edges}};
  return graph;
}

std::unique_ptr<Store> Pin(std::unique_ptr<Store> store) {
  const absl::Status pinned = store->LoadIntoMemory(
      Store::Content::kFeatures, [](DType dtype, std::vector<int64_t> shape) {
        return cuda::AllocatePinnedArray(0, dtype, std::move(shape));
      });
  EXPECT_TRUE(pinned.ok()) << pinned;
  return store;
}

// How many of the ids are among the hottest rows of their partitions.
uint64_t CountHot(const PartitionBook& book, const std::vector<uint64_t>& ids,
                  double ratio) {
  return std::ranges::count_if(ids, [&](uint64_t id) {
    const int p = book.Owner(id);
    return id - book.begin(p) < HottestRows(ratio, book.end(p) - book.begin(p));
  });
}

// The elements of an array that may be on a device.
std::vector<std::byte> BytesOf(const Array& array) {
  std::vector<std::byte> bytes(array.total_bytes());
  if (!bytes.empty()) {
    EXPECT_EQ(
        cudaMemcpy(bytes.data(), array.data(), bytes.size(), cudaMemcpyDefault),
        cudaSuccess);
  }
  return bytes;
}

void ExpectRows(const absl::StatusOr<Array>& rows, const ColumnSpec& spec,
                const std::vector<std::byte>& want, int device) {
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->device(), device);
  EXPECT_EQ(rows->dtype(), spec.dtype);
  EXPECT_EQ(rows->row_bytes(), spec.row_bytes());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(rows->data()) % 64, 0);
  EXPECT_EQ(BytesOf(*rows), want);
}

// Gathers for `wanted`, and expects the rows on `device`.
void ExpectNodes(const Store& store, CudaFeatureRows& rows, TypeIndex type,
                 const std::vector<uint64_t>& ids, int wanted = kHost,
                 int device = kHost) {
  const ColumnSpec& spec = store.schema().node_types[type].feature;
  std::vector<std::byte> want(ids.size() * spec.row_bytes());
  ASSERT_TRUE(
      GatherRows(store, type, NodeColumn::kFeature, ids, want.data()).ok());
  KnownMemory memory(wanted);
  ExpectRows(rows.GatherNodes(type, ids, wanted == kHost ? nullptr : &memory),
             spec, want, device);
}

void ExpectEdges(const Store& store, CudaFeatureRows& rows,
                 RelationIndex relation, const std::vector<uint32_t>& parts,
                 const std::vector<uint64_t>& numbers, int wanted = kHost,
                 int device = kHost) {
  const ColumnSpec& spec = store.schema().relations[relation].feature;
  std::vector<std::byte> want(numbers.size() * spec.row_bytes());
  ASSERT_TRUE(
      GatherEdgeRows(store, relation, parts, numbers, want.data()).ok());
  KnownMemory memory(wanted);
  ExpectRows(rows.GatherEdges(relation, parts, numbers,
                              wanted == kHost ? nullptr : &memory),
             spec, want, device);
}

// All ids of a type, backwards, and some of them again.
std::vector<uint64_t> IdsOf(const Store& store, TypeIndex type) {
  std::vector<uint64_t> ids(store.book(type).node_count());
  std::iota(ids.rbegin(), ids.rend(), uint64_t{0});
  ids.insert(ids.end(), {0, 3, 3, 1});
  return ids;
}

// All rows of a relation, by turns from all partitions.
struct EdgeRows {
  std::vector<uint32_t> parts;
  std::vector<uint64_t> rows;
  uint64_t hot = 0;
};
EdgeRows EdgeRowsOf(const Store& store, RelationIndex relation, double ratio) {
  EdgeRows all;
  for (uint64_t row = 0; row < 60; ++row) {
    for (int p = 0; p < store.partition_count(); ++p) {
      const auto count = static_cast<uint64_t>(
          store.partition(p)->edges[relation].feature.rows());
      if (row >= count) continue;
      all.parts.push_back(static_cast<uint32_t>(p));
      all.rows.push_back(row);
      all.hot += row < HottestRows(ratio, count) ? 1 : 0;
    }
  }
  return all;
}

class DeviceFeatureRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    two_ = count > 1;
    for (int device = 0; device < (two_ ? 2 : 1); ++device) {
      ASSERT_TRUE(cuda::OpenDevice(device).ok());
    }
    if (two_) peers_ = cuda::EnablePeerAccess(std::vector<int>{0, 1}).value();
  }

  // Lists of devices that the tests use.
  std::vector<std::vector<int>> DeviceLists() const {
    if (!two_) return {{0}};
    return {{0}, {1}, {0, 1}};
  }

  // Bytes of memory of a device that are free, besides what streams keep.
  static uint64_t FreeBytes(int device) {
    cudaMemPool_t pool = nullptr;
    EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, device), cudaSuccess);
    EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
    return cuda::MemoryUseOf(device).value().free_bytes;
  }

  bool two_ = false;
  bool peers_ = true;  // both can read each other's memory
};

TEST_F(DeviceFeatureRowsTest, GathersTheRowsOfTheCpu) {
  for (const int parts : {0, 3}) {
    const TestStore stored(OddRows(), parts);
    for (const std::vector<int>& devices : DeviceLists()) {
      for (const double ratio : {0.0, 0.1, 0.5, 1.0}) {
        SCOPED_TRACE(::testing::Message()
                     << parts << " partitions, " << devices.size()
                     << " devices, the first " << devices[0] << ", ratio "
                     << ratio);
        const std::shared_ptr<const Store> store = Pin(stored.Open());
        const auto rows = CudaFeatureRows::Create(store, devices, ratio);
        ASSERT_TRUE(rows.ok()) << rows.status();
        uint64_t hot = 0, all = 0;
        // Twice, so that each of the devices does each of the calls.
        for (size_t i = 0; i < 2; ++i) {
          for (const TypeIndex type : {kFloats, kBytes, kHalves, kDoubles}) {
            const std::vector<uint64_t> ids = IdsOf(*store, type);
            ExpectNodes(*store, **rows, type, ids);
            hot += CountHot(store->book(type), ids, ratio);
            all += ids.size();
          }
          for (const RelationIndex relation : {kFloatEdges, kByteEdges}) {
            const EdgeRows edges = EdgeRowsOf(*store, relation, ratio);
            ExpectEdges(*store, **rows, relation, edges.parts, edges.rows);
            hot += edges.hot;
            all += edges.rows.size();
          }
          // An odd number of calls.
          ExpectNodes(*store, **rows, kFloats, {0});
          hot += CountHot(store->book(kFloats), {0}, ratio);
          ++all;
        }
        const FeatureRowCounts counts = (*rows)->counts();
        EXPECT_EQ(counts.gpu + counts.gpu_pinned, all);
        // Each of two devices that only read their own memory has done each
        // of the calls once.
        const bool both = devices.size() == 1 || peers_;
        EXPECT_EQ(counts.gpu, both ? hot : hot / 2);
      }
    }
  }
}

TEST_F(DeviceFeatureRowsTest, LeavesRowsOnTheDeviceThatIsAskedFor) {
  const TestStore stored(OddRows(), 3);
  for (const std::vector<int>& devices : DeviceLists()) {
    for (const double ratio : {0.0, 0.5, 1.0}) {
      const std::shared_ptr<const Store> store = Pin(stored.Open());
      const auto rows = CudaFeatureRows::Create(store, devices, ratio).value();
      uint64_t all = 0;
      for (const int wanted : {0, 1, 7}) {
        SCOPED_TRACE(::testing::Message()
                     << devices.size() << " devices, the first " << devices[0]
                     << ", ratio " << ratio << ", for device " << wanted);
        const bool reads = std::ranges::count(devices, wanted) > 0;
        const int device = reads ? wanted : kHost;
        for (const TypeIndex type : {kFloats, kBytes, kHalves, kDoubles}) {
          const std::vector<uint64_t> ids = IdsOf(*store, type);
          ExpectNodes(*store, *rows, type, ids, wanted, device);
          all += ids.size();
        }
        for (const RelationIndex relation : {kFloatEdges, kByteEdges}) {
          const EdgeRows edges = EdgeRowsOf(*store, relation, ratio);
          ExpectEdges(*store, *rows, relation, edges.parts, edges.rows, wanted,
                      device);
          all += edges.rows.size();
        }
      }
      EXPECT_EQ(rows->counts().gpu + rows->counts().gpu_pinned, all);
    }
  }
}

TEST_F(DeviceFeatureRowsTest, GathersMoreRowsThanThreadsOfAGrid) {
  const std::shared_ptr<const Store> store = TestStore(OddRows(), 2).Open();
  const auto rows = CudaFeatureRows::Create(store, {0}, 1);
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::vector<uint64_t> ids(3000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i * i % 23;
  ExpectNodes(*store, **rows, kBytes, ids);
  EXPECT_EQ((*rows)->counts().gpu, ids.size());
}

TEST_F(DeviceFeatureRowsTest, NeedsNoPinnedRowsIfDevicesHoldAll) {
  const std::shared_ptr<const Store> store = TestStore(OddRows(), 2).Open();
  for (const std::vector<int>& devices : DeviceLists()) {
    const auto rows = CudaFeatureRows::Create(store, devices, 1);
    if (devices.size() > 1 && !peers_) {
      EXPECT_EQ(rows.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(
          std::string(rows.status().message()),
          HasSubstr("CUDA device 0 cannot read the memory of device 1"));
      continue;
    }
    ASSERT_TRUE(rows.ok()) << rows.status();
    ExpectNodes(*store, **rows, kDoubles, IdsOf(*store, kDoubles));
    EXPECT_EQ((*rows)->counts().gpu_pinned, 0);
  }
}

TEST_F(DeviceFeatureRowsTest, ReadsPinnedRowsAtAnyAddress) {
  const TestStore stored(OddRows(), 2);
  for (const int64_t offset : {1, 2, 4, 8}) {
    std::unique_ptr<Store> store = stored.Open();
    const absl::Status pinned = store->LoadIntoMemory(
        Store::Content::kFeatures,
        [&](DType dtype, std::vector<int64_t> shape) -> absl::StatusOr<Array> {
          const size_t bytes = Array::Allocate(dtype, shape).total_bytes();
          auto block = cuda::AllocatePinnedArray(
              0, DType::kUint8, {static_cast<int64_t>(bytes) + offset});
          if (!block.ok()) return block.status();
          return Array::Borrow(dtype, std::move(shape), block->data() + offset,
                               std::make_shared<const Array>(*block));
        });
    ASSERT_TRUE(pinned.ok()) << pinned;
    const std::shared_ptr<const Store> shared = std::move(store);
    const auto rows = CudaFeatureRows::Create(shared, {0}, 0.5).value();
    for (const TypeIndex type : {kFloats, kDoubles}) {
      ExpectNodes(*shared, *rows, type, IdsOf(*shared, type));
    }
  }
}

TEST_F(DeviceFeatureRowsTest, RefusesOtherRowsThatAreNotPinned) {
  const uint64_t before = FreeBytes(0);
  const std::shared_ptr<const Store> store = TestStore(OddRows(), 2).Open();
  const absl::Status status = CudaFeatureRows::Create(store, {0}, 0.9).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("not all feature rows are in GPU memory, so that the "
                        "feature rows must be in pinned memory"));
  EXPECT_EQ(FreeBytes(0), before);
}

TEST_F(DeviceFeatureRowsTest, DividesRowsEvenly) {
  TestGraph graph;
  graph.types = {
      {.count = 5000, .feature = Elements(DType::kFloat32, 5000, 64)}};
  graph.relations = {{}};
  const std::shared_ptr<const Store> store = Pin(TestStore(graph, 2).Open());
  const auto bytes = [&](const std::vector<int>& devices, double ratio) {
    return static_cast<double>(
        cuda::DeviceFeatures::Create(*store, devices, ratio)
            .value()
            ->bytes_each());
  };
  EXPECT_NEAR(bytes({0}, 1), 5000 * 256, 1024);
  EXPECT_NEAR(bytes({0}, 0.25), 1250 * 256, 1024);
  EXPECT_EQ(bytes({0}, 0), 0);
  if (two_) {
    EXPECT_NEAR(bytes({0, 1}, 1), 2500 * 256, 1024);
    // The hottest rows are not all on one device.
    const uint64_t first = FreeBytes(0), second = FreeBytes(1);
    const auto features =
        cuda::DeviceFeatures::Create(*store, {0, 1}, 1).value();
    EXPECT_EQ(first - FreeBytes(0), second - FreeBytes(1));
  }
}

TEST_F(DeviceFeatureRowsTest, FailsAsTheCpuDoes) {
  const TestStore stored(OddRows(), 3);
  const std::shared_ptr<const Store> store = Pin(stored.Open({0, 2}));
  const auto rows = CudaFeatureRows::Create(store, {0}, 0.5).value();
  KnownMemory memory(0);
  std::vector<std::byte> ignored(4096);
  const uint64_t unmapped = store->book(kFloats).begin(1);
  const uint64_t count = store->book(kFloats).node_count();
  for (const auto& [type, ids] :
       std::vector<std::pair<TypeIndex, std::vector<uint64_t>>>{
           {kFloats, {0, count, 1}},
           {kFloats, {0, ~uint64_t{0}}},
           {kFloats, {0, unmapped}},
           {kFloats, {unmapped, count}},
           {kBare, {0}},
           {kBare, {}}}) {
    const absl::Status expected =
        GatherRows(*store, type, NodeColumn::kFeature, ids, ignored.data());
    EXPECT_FALSE(expected.ok());
    for (ArrayMemory* wanted : {static_cast<ArrayMemory*>(nullptr),
                                static_cast<ArrayMemory*>(&memory)}) {
      EXPECT_EQ(rows->GatherNodes(type, ids, wanted).status(), expected);
    }
  }
  const auto edge_count = static_cast<uint64_t>(
      store->partition(2)->edges[kFloatEdges].feature.rows());
  for (const auto& [relation, parts, numbers] :
       std::vector<std::tuple<RelationIndex, std::vector<uint32_t>,
                              std::vector<uint64_t>>>{
           {kFloatEdges, {0, 2, 0}, {0, edge_count, 1}},
           {kFloatEdges, {0, 2}, {0, ~uint64_t{0}}},
           {kFloatEdges, {0, 1}, {0, 0}},
           {kBareEdges, {0}, {0}}}) {
    const absl::Status expected =
        GatherEdgeRows(*store, relation, parts, numbers, ignored.data());
    EXPECT_FALSE(expected.ok());
    for (ArrayMemory* wanted : {static_cast<ArrayMemory*>(nullptr),
                                static_cast<ArrayMemory*>(&memory)}) {
      EXPECT_EQ(rows->GatherEdges(relation, parts, numbers, wanted).status(),
                expected);
    }
  }
  EXPECT_EQ(rows->GatherNodes(kFloats, {}, &memory)->rows(), 0);
  EXPECT_EQ(rows->GatherEdges(kFloatEdges, {}, {}, &memory)->rows(), 0);
  EXPECT_EQ(rows->counts().gpu + rows->counts().gpu_pinned, 0);
  // It still works.
  ExpectNodes(*store, *rows, kFloats, {0, 1}, 0, 0);
  ExpectEdges(*store, *rows, kFloatEdges, {2, 0}, {edge_count - 1, 0});
}

// Takes the memory of a device, except `left` bytes.
cuda::DeviceBlock TakeMemory(int device, uint64_t left) {
  const uint64_t free = cuda::MemoryUseOf(device).value().free_bytes;
  return cuda::AllocateDevice(device, free - left, "a test").value();
}

TEST_F(DeviceFeatureRowsTest, SaysWhichRowsDoNotFit) {
  TestGraph graph;
  graph.types = {
      {.count = 5000, .feature = Elements(DType::kFloat32, 5000, 64)}};
  graph.relations = {{}};
  const std::shared_ptr<const Store> store = Pin(TestStore(graph, 2).Open());
  for (const std::vector<int>& devices : DeviceLists()) {
    const int last = devices.back();
    const cuda::DeviceBlock taken = TakeMemory(last, 500000);
    std::vector<uint64_t> before;
    for (const int device : devices) before.push_back(FreeBytes(device));
    const absl::Status status =
        CudaFeatureRows::Create(store, devices, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("feature rows takes " +
                        std::to_string(devices.size() > 1 ? 640000 : 1280000) +
                        " bytes"),
              HasSubstr("CUDA device " + std::to_string(last) + " has ")));
    for (size_t i = 0; i < devices.size(); ++i) {
      EXPECT_EQ(FreeBytes(devices[i]), before[i]);
    }
    EXPECT_TRUE(CudaFeatureRows::Create(store, devices, 0.1).ok());
  }
}

TEST_F(DeviceFeatureRowsTest, SaysWhichNumbersDoNotFit) {
  const std::shared_ptr<const Store> store = TestStore(OddRows(), 2).Open();
  const auto rows = CudaFeatureRows::Create(store, {0}, 1).value();
  std::vector<uint64_t> ids(100000, 1);
  KnownMemory memory(0);
  for (const auto& [wanted, words] :
       {std::pair(static_cast<ArrayMemory*>(nullptr),
                  "the list of 100000 feature rows to gather does not fit"),
        std::pair(static_cast<ArrayMemory*>(&memory),
                  "the 700000 bytes of 100000 feature rows, and the list of "
                  "them, do not fit")}) {
    const cuda::DeviceBlock taken = TakeMemory(0, 1000);
    const absl::Status status = rows->GatherNodes(kBytes, ids, wanted).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(words),
                      HasSubstr("the memory of CUDA device 0, of which ")));
  }
  // There is room for the rows, but not for their numbers too.
  {
    const cuda::DeviceBlock taken = TakeMemory(0, 1 << 20);
    EXPECT_TRUE(absl::IsFailedPrecondition(
        rows->GatherNodes(kBytes, ids, &memory).status()));
  }
  ids.resize(100);
  ExpectNodes(*store, *rows, kBytes, ids, 0, 0);
}

TEST_F(DeviceFeatureRowsTest, TriesAgainWithTheMemoryThatOthersKept) {
  const std::shared_ptr<const Store> store = TestStore(OddRows(), 2).Open();
  const auto rows = CudaFeatureRows::Create(store, {0}, 1).value();
  const auto pool = cuda::DevicePool::Of(0);
  pool->Allocate(1 << 20).value();
  // Enough for the rows, but for their numbers only with what is kept.
  const cuda::DeviceBlock taken = TakeMemory(0, 900'000);
  ExpectNodes(*store, *rows, kBytes, std::vector<uint64_t>(100000, 1), 0, 0);
}

TEST_F(DeviceFeatureRowsTest, GathersInManyThreads) {
  const std::shared_ptr<const Store> store =
      Pin(TestStore(OddRows(), 2).Open());
  for (const std::vector<int>& devices : DeviceLists()) {
    const auto rows = CudaFeatureRows::Create(store, devices, 0.5).value();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 4; ++i) {
          const auto type = static_cast<TypeIndex>((t + i) % kBare);
          std::vector<uint64_t> ids = IdsOf(*store, type);
          std::ranges::rotate(ids, ids.begin() + t);
          const int wanted = i % 2 == 0 ? kHost : devices.back();
          ExpectNodes(*store, *rows, type, ids, wanted, wanted);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(DeviceFeatureRowsTest, ArraysMayOutliveIt) {
  const uint64_t before = FreeBytes(0);
  const std::shared_ptr<const Store> store = TestStore(OddRows()).Open();
  const std::vector<uint64_t> ids = IdsOf(*store, kDoubles);
  std::vector<std::byte> want(ids.size() * 48);
  ASSERT_TRUE(
      GatherRows(*store, kDoubles, NodeColumn::kFeature, ids, want.data())
          .ok());
  for (const int device : {kHost, 0}) {
    KnownMemory memory(device);
    auto rows = CudaFeatureRows::Create(store, {0}, 1).value();
    const Array out = rows->GatherNodes(kDoubles, ids, &memory).value();
    rows.reset();
    EXPECT_EQ(BytesOf(out), want);
    if (device == 0) {
      EXPECT_LT(FreeBytes(0), before);
    }
  }
  EXPECT_EQ(FreeBytes(0), before);
}

// Whether an error is one that failed calls of the runtime cause.
bool IsDeviceError(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsFailedPrecondition(status);
}

// Gathers rows on each of the devices twice, or as far as calls succeed. They
// stay there, or come to the host.
void GatherOrFail(const std::shared_ptr<const Store>& store,
                  const std::vector<int>& devices, bool stay) {
  const auto rows = CudaFeatureRows::Create(store, devices, 0.5);
  if (!rows.ok()) {
    EXPECT_TRUE(IsDeviceError(rows.status())) << rows.status();
    return;
  }
  const std::vector<uint64_t> ids = IdsOf(*store, kFloats);
  std::vector<std::byte> want(ids.size() * 12);
  ASSERT_TRUE(
      GatherRows(*store, kFloats, NodeColumn::kFeature, ids, want.data()).ok());
  for (size_t i = 0; i < 2 * devices.size(); ++i) {
    KnownMemory memory(stay ? devices[i % devices.size()] : kHost);
    const auto gathered = (*rows)->GatherNodes(kFloats, ids, &memory);
    if (!gathered.ok()) {
      EXPECT_TRUE(IsDeviceError(gathered.status())) << gathered.status();
      continue;
    }
    std::vector<std::byte> got(want.size());
    // After a failure the device may not copy any more.
    if (cudaMemcpy(got.data(), gathered->data(), got.size(),
                   cudaMemcpyDefault) == cudaSuccess) {
      EXPECT_EQ(got, want);
    }
  }
}

// failed_gathers_test.py makes calls of the runtime fail.
class FailedGathersTest : public DeviceFeatureRowsTest,
                          public ::testing::WithParamInterface<bool> {};

TEST_P(FailedGathersTest, EndsWithRowsOrAnErrorAndFreesMemory) {
  const std::shared_ptr<const Store> store =
      Pin(TestStore(OddRows(), 2).Open());
  const std::vector<int> devices = DeviceLists().back();
  // Kernels, too, take memory when they are first used.
  GatherOrFail(store, devices, GetParam());
  std::vector<uint64_t> before;
  for (const int device : devices) before.push_back(FreeBytes(device));
  GatherOrFail(store, devices, GetParam());
  for (size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(FreeBytes(devices[i]), before[i]) << "memory was not freed";
  }
}

INSTANTIATE_TEST_SUITE_P(Stay, FailedGathersTest, ::testing::Bool());

}  // namespace
}  // namespace millrace::testing
