// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/pinned_pool.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>

#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {
namespace {

constexpr uint64_t kSmallestBlock = 4096;

}  // namespace

std::shared_ptr<PinnedPool> PinnedPool::Create(int device,
                                               uint64_t max_idle_bytes) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(device, max_idle_bytes));
}

PinnedPool::~PinnedPool() { DropIdle(); }

uint64_t PinnedPool::BlockBytes(uint64_t bytes) {
  const uint64_t least = std::max(bytes, kSmallestBlock);
  return RoundUp(least, std::bit_floor(least) / 8);
}

void PinnedPool::DropIdle() {
  std::map<uint64_t, std::vector<std::byte*>> dropped;
  {
    const MutexLock lock(&mutex_);
    dropped.swap(idle_);
    idle_bytes_ = 0;
  }
  for (const auto& [bytes, blocks] : dropped) {
    for (std::byte* block : blocks) Unpin(block);
  }
}

absl::StatusOr<std::byte*> PinnedPool::Pin(uint64_t bytes) const {
  const ScopedDevice current(device_);
  MILLRACE_RETURN_IF_ERROR(current.status());
  void* data = nullptr;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaHostAlloc(&data, bytes, cudaHostAllocPortable),
                 StrCat("cannot pin ", bytes, " bytes of host memory")));
  return static_cast<std::byte*>(data);
}

absl::StatusOr<std::shared_ptr<std::byte>> PinnedPool::Allocate(
    uint64_t bytes) {
  const uint64_t size = BlockBytes(bytes);
  std::byte* block = nullptr;
  {
    const MutexLock lock(&mutex_);
    std::vector<std::byte*>& kept = idle_[size];
    if (!kept.empty()) {
      block = kept.back();
      kept.pop_back();
      idle_bytes_ -= size;
    }
  }
  if (block == nullptr) {
    absl::StatusOr<std::byte*> pinned = Pin(size);
    if (absl::IsResourceExhausted(pinned.status())) {
      DropIdle();
      pinned = Pin(size);
    }
    MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(pinned.status()));
    block = *pinned;
  }
  {
    const MutexLock lock(&mutex_);
    used_bytes_ += size;
    most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  }
  return std::shared_ptr<std::byte>(
      block, [pool = shared_from_this(), size](std::byte* freed) {
        pool->Return(freed, size);
      });
}

void PinnedPool::Return(std::byte* block, uint64_t bytes) {
  {
    const MutexLock lock(&mutex_);
    used_bytes_ -= bytes;
    const uint64_t idle = idle_bytes_ + bytes;
    if (idle <= max_idle_bytes_ || idle + used_bytes_ <= most_used_bytes_) {
      idle_[bytes].push_back(block);
      idle_bytes_ += bytes;
      return;
    }
  }
  Unpin(block);
}

void PinnedPool::Unpin(std::byte* block) const {
  const ScopedDevice current(device_);
  IgnoreFailure(cudaFreeHost(block));
}

uint64_t PinnedPool::idle_bytes() const {
  const MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace millrace::cuda
