// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/cuda/cuda_device_cache.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_memory.h"
#include "common/cuda/runtime/pinned_array.h"
#include "common/cuda/runtime/pinned_memory.h"

namespace millrace::testing {
namespace {

using cuda::CudaDeviceCache;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

constexpr int64_t kHeldRows = 40;

// Rows [count, d] of bytes that differ for each seed, in memory that
// `memory` provides.
Array RowsOf(DType dtype, int64_t count, int64_t d, int seed,
             ArrayMemory* memory = nullptr) {
  Array rows = Array::Allocate(dtype, {count, d}, memory);
  for (size_t b = 0; b < rows.total_bytes(); ++b) {
    rows.mutable_data()[b] =
        static_cast<std::byte>(seed * 37 + static_cast<int>(b * 7 + b / 251));
  }
  return rows;
}

// The same rows `offset` bytes further on in pinned memory.
Array PinnedAt(const Array& rows, int64_t offset) {
  const auto bytes = static_cast<int64_t>(rows.total_bytes());
  const auto block = std::make_shared<Array>(
      cuda::AllocatePinnedArray(0, DType::kUint8, {bytes + offset}).value());
  std::byte* to = block->mutable_data() + offset;
  std::memcpy(to, rows.data(), rows.total_bytes());
  return Array::Borrow(rows.dtype(), rows.shape(), to, block);
}

// The bytes of an array on a device.
Bytes Download(const Array& array) {
  EXPECT_FALSE(array.on_host());
  Bytes bytes(array.total_bytes());
  if (bytes.empty()) return bytes;
  const cuda::ScopedDevice current(array.device());
  EXPECT_EQ(cudaMemcpy(bytes.data(), array.data(), bytes.size(),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  return bytes;
}

// The rows that a merge should return.
Bytes Want(const Array& held, const std::vector<int64_t>& places,
           const Array& received) {
  Bytes want;
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t row_bytes = received.row_bytes();
    const std::byte* row =
        places[i] < 0
            ? received.data() + i * row_bytes
            : held.data() + static_cast<uint64_t>(places[i]) * row_bytes;
    want.insert(want.end(), row, row + row_bytes);
  }
  return want;
}

// Some held and some received rows; the held ones repeat.
std::vector<int64_t> Places(int64_t count) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i) {
    places.push_back(i % 3 == 1 ? -1 : i * i % kHeldRows);
  }
  return places;
}

class DeviceCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaGetDeviceCount(&devices_), cudaSuccess);
    for (int device = 0; device < devices_; ++device) {
      ASSERT_TRUE(cuda::OpenDevice(device).ok());
    }
  }

  // Holds rows, written in two pieces, the last one first.
  static absl::StatusOr<Array> Hold(CudaDeviceCache& rows, const Array& from) {
    absl::StatusOr<Array> held = rows.Allocate(from.dtype(), from.shape());
    if (!held.ok()) return held.status();
    const int64_t cut = from.rows() / 3;
    for (const auto& [first, end] :
         {std::pair(cut, from.rows()), std::pair(int64_t{0}, cut)}) {
      const Array piece = Array::Borrow(
          from.dtype(), {end - first, from.shape()[1]},
          from.data() + static_cast<uint64_t>(first) * from.row_bytes(),
          nullptr);
      const absl::Status written = rows.Write(piece, first, *held);
      if (!written.ok()) return written;
    }
    return held;
  }

  static void ExpectMerged(CudaDeviceCache& rows, const Array& from,
                           const std::vector<int64_t>& places,
                           const Array& received) {
    const absl::StatusOr<Array> held = Hold(rows, from);
    ASSERT_TRUE(held.ok()) << held.status();
    const absl::StatusOr<Array> merged = rows.Merge(*held, places, received);
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_EQ(merged->device(), rows.device());
    EXPECT_EQ(merged->dtype(), received.dtype());
    EXPECT_EQ(merged->shape(), received.shape());
    EXPECT_EQ(Download(*merged), Want(from, places, received));
  }

  // Bytes of memory of a device that are free, besides what streams keep.
  static uint64_t FreeBytes(int device) {
    const cuda::ScopedDevice current(device);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cuda::TrimMemory(device);
    return cuda::MemoryUseOf(device).value().free_bytes;
  }

  int devices_ = 0;
};

TEST_F(DeviceCacheTest, MergesRowsOfAnyWidth) {
  CudaDeviceCache rows(0);
  cuda::PinnedMemory memory(0);
  const std::pair<DType, int64_t> columns[] = {
      {DType::kUint8, 1},    {DType::kUint8, 7},   {DType::kFloat16, 3},
      {DType::kFloat32, 3},  {DType::kFloat64, 5}, {DType::kFloat32, 4},
      {DType::kFloat32, 130}};
  for (const auto& [dtype, d] : columns) {
    SCOPED_TRACE(::testing::Message() << DTypeName(dtype) << ", " << d);
    // With 1000 rows all but the narrowest are pinned.
    for (const int64_t count : {30, 1000}) {
      ExpectMerged(rows, RowsOf(dtype, kHeldRows, d, 1), Places(count),
                   RowsOf(dtype, count, d, 2, &memory));
    }
  }
}

TEST_F(DeviceCacheTest, MergesReceivedRowsAtAnyAddress) {
  CudaDeviceCache rows(0);
  const Array held = RowsOf(DType::kFloat64, kHeldRows, 6, 1);
  const Array received = RowsOf(DType::kFloat64, 25, 6, 2);
  for (const int64_t offset : {0, 1, 2, 4, 8}) {
    ExpectMerged(rows, held, Places(25), PinnedAt(received, offset));
  }
}

TEST_F(DeviceCacheTest, MergesRowsThatAreAllOfOneKindAndNone) {
  CudaDeviceCache rows(0);
  const Array held = RowsOf(DType::kFloat32, kHeldRows, 3, 1);
  for (const int64_t place : {-1, 39}) {
    ExpectMerged(rows, held, std::vector<int64_t>(12, place),
                 PinnedAt(RowsOf(DType::kFloat32, 12, 3, 2), 0));
  }
  ExpectMerged(rows, held, {}, RowsOf(DType::kFloat32, 0, 3, 2));
}

// Whoever has written rows may change them, and others may read what is held.
TEST_F(DeviceCacheTest, RowsAreWrittenWhenTheCallReturns) {
  CudaDeviceCache rows(0);
  const Array from = RowsOf(DType::kFloat32, kHeldRows, 8, 1);
  const Bytes want(from.data(), from.data() + from.total_bytes());
  for (const bool pinned : {true, false}) {
    Array source =
        pinned ? PinnedAt(from, 0) : RowsOf(DType::kFloat32, kHeldRows, 8, 1);
    const Array held = rows.Allocate(DType::kFloat32, {kHeldRows, 8}).value();
    ASSERT_TRUE(rows.Write(source, 0, held).ok());
    std::memset(source.mutable_data(), 0, source.total_bytes());
    EXPECT_EQ(Download(held), want);
  }
}

// The result does not need the received rows any more, nor the held ones, nor
// what has merged them.
TEST_F(DeviceCacheTest, ResultsOutliveEverything) {
  const uint64_t before = FreeBytes(0);
  Array merged;
  Bytes want;
  {
    CudaDeviceCache rows(0);
    cuda::PinnedMemory memory(0);
    const Array from = RowsOf(DType::kFloat32, kHeldRows, 8, 1);
    const Array held = Hold(rows, from).value();
    Array received = RowsOf(DType::kFloat32, 1000, 8, 2, &memory);
    merged = rows.Merge(held, Places(1000), received).value();
    want = Want(from, Places(1000), received);
    std::memset(received.mutable_data(), 0, received.total_bytes());
    // Later merges take other memory.
    EXPECT_TRUE(rows.Merge(held, Places(1000), received).ok());
  }
  EXPECT_EQ(Download(merged), want);
  std::thread([last = std::exchange(merged, {})] {}).join();
  EXPECT_EQ(FreeBytes(0), before);
}

TEST_F(DeviceCacheTest, EachDeviceHasItsOwn) {
  if (devices_ < 2) GTEST_SKIP() << "needs two devices";
  const Array received = RowsOf(DType::kFloat32, 30, 3, 2);
  for (const int device : {1, 0, 1}) {
    CudaDeviceCache rows(device);
    ExpectMerged(rows, RowsOf(DType::kFloat32, kHeldRows, 3, device),
                 Places(30), received);
    // Pinned by way of device 0.
    ExpectMerged(rows, RowsOf(DType::kFloat32, kHeldRows, 3, device),
                 Places(30), PinnedAt(received, 0));
  }
}

TEST_F(DeviceCacheTest, MergesInManyThreads) {
  CudaDeviceCache rows(0);
  cuda::PinnedMemory memory(0);
  const Array from = RowsOf(DType::kFloat32, kHeldRows, 9, 1);
  const Array held = Hold(rows, from).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i) {
        const int64_t count = 300 + 200 * i + t;
        const Array received =
            RowsOf(DType::kFloat32, count, 9, 4 * t + i, &memory);
        const auto merged = rows.Merge(held, Places(count), received);
        ASSERT_TRUE(merged.ok()) << merged.status();
        EXPECT_EQ(Download(*merged), Want(from, Places(count), received));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DeviceCacheTest, CountsWhatStreamsKeepAsFree) {
  CudaDeviceCache rows(0);
  const uint64_t before = rows.FreeBytes().value();
  const Array held = rows.Allocate(DType::kUint8, {1000, 64}).value();
  EXPECT_EQ(held.device(), 0);
  EXPECT_EQ(held.shape(), (std::vector<int64_t>{1000, 64}));
  EXPECT_LE(rows.FreeBytes().value() + 64000, before);
}

// Takes the memory of a device, except `left` bytes.
cuda::DeviceBlock TakeMemory(int device, uint64_t left) {
  const uint64_t free = cuda::MemoryUseOf(device).value().free_bytes;
  return cuda::AllocateDevice(device, free - left, "a test").value();
}

TEST_F(DeviceCacheTest, SaysWhatDoesNotFit) {
  CudaDeviceCache rows(0);
  const Array from = RowsOf(DType::kFloat32, kHeldRows, 8, 1);
  const Array held = Hold(rows, from).value();
  const Array received = PinnedAt(RowsOf(DType::kFloat32, 5000, 8, 2), 0);
  {
    const cuda::DeviceBlock taken = TakeMemory(0, 100000);
    const absl::Status merged =
        rows.Merge(held, Places(5000), received).status();
    EXPECT_EQ(merged.code(), absl::StatusCode::kResourceExhausted) << merged;
    EXPECT_THAT(
        std::string(merged.message()),
        AllOf(HasSubstr("the features of a batch take 160000 bytes, but CUDA "
                        "device 0 has "),
              HasSubstr("\nkeep fewer feature rows in it, or use smaller")));
    const absl::Status allocated =
        rows.Allocate(DType::kFloat32, {5000, 8}).status();
    EXPECT_EQ(allocated.code(), absl::StatusCode::kResourceExhausted)
        << allocated;
    EXPECT_THAT(
        std::string(allocated.message()),
        HasSubstr("the feature cache takes 160000 bytes, but CUDA device 0"));
  }
  EXPECT_EQ(Download(rows.Merge(held, Places(5000), received).value()),
            Want(from, Places(5000), received));
}

// Whether an error is one that failed calls of the runtime cause.
bool IsDeviceError(const absl::Status& status) {
  return (absl::IsUnavailable(status) &&
          status.message().find("CUDA device 0 has failed") !=
              std::string::npos) ||
         absl::IsResourceExhausted(status);
}

// Holds and merges rows, pinned ones and others, as far as calls succeed.
void MergeOrFail() {
  CudaDeviceCache rows(0);
  const Array from = RowsOf(DType::kFloat32, kHeldRows, 8, 1);
  const absl::StatusOr<uint64_t> free = rows.FreeBytes();
  if (!free.ok()) {
    EXPECT_TRUE(IsDeviceError(free.status())) << free.status();
  }
  const absl::StatusOr<Array> held = rows.Allocate(DType::kFloat32, {40, 8});
  if (!held.ok()) {
    EXPECT_TRUE(IsDeviceError(held.status())) << held.status();
    return;
  }
  const absl::Status written = rows.Write(from, 0, *held);
  if (!written.ok()) {
    EXPECT_TRUE(IsDeviceError(written)) << written;
    return;
  }
  const Array plain = RowsOf(DType::kFloat32, 50, 8, 2);
  const auto block =
      std::shared_ptr<std::byte>(cuda::PinnedMemory(0).Allocate(100'000));
  std::memcpy(block.get(), plain.data(), plain.total_bytes());
  const Array pinned =
      Array::Borrow(DType::kFloat32, {50, 8}, block.get(), block);
  for (const Array& received : {plain, pinned, plain}) {
    const absl::StatusOr<Array> merged =
        rows.Merge(*held, Places(50), received);
    if (merged.ok()) {
      Bytes got(plain.total_bytes());
      const cuda::ScopedDevice current(0);
      // Failed calls may include this one.
      if (cudaMemcpy(got.data(), merged->data(), got.size(),
                     cudaMemcpyDeviceToHost) == cudaSuccess) {
        EXPECT_EQ(got, Want(from, Places(50), plain));
      }
    } else {
      EXPECT_TRUE(IsDeviceError(merged.status())) << merged.status();
    }
  }
}

// failed_merges_test.py makes calls of the runtime fail.
TEST_F(DeviceCacheTest, EndsWithRowsOrAnErrorAndFreesMemory) {
  // Kernels, too, take memory when they are first used.
  MergeOrFail();
  const uint64_t before = FreeBytes(0);
  MergeOrFail();
  EXPECT_EQ(FreeBytes(0), before) << "memory was not freed";
}

}  // namespace
}  // namespace millrace::testing
