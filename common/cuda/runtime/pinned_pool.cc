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
  std::map<uint64_t, Kept> dropped;
  {
    const MutexLock lock(&mutex_);
    dropped.swap(idle_);
    idle_bytes_ = 0;
  }
  for (const auto& [bytes, kept] : dropped) {
    for (std::byte* block : kept.blocks) Unpin(block);
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
    const auto kept = idle_.find(size);
    if (kept != idle_.end()) {
      block = kept->second.blocks.back();
      kept->second.blocks.pop_back();
      if (kept->second.blocks.empty()) idle_.erase(kept);
      idle_bytes_ -= size;
    }
  }
  if (block == nullptr) {
    absl::StatusOr<std::byte*> pinned = Pin(size);
    if (absl::IsResourceExhausted(pinned.status())) {
      DropIdle();
      pinned = Pin(size);
    }
    MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(pinned.status(), device_));
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

bool PinnedPool::MayKeep(uint64_t bytes) const {
  const uint64_t idle = idle_bytes_ + bytes;
  return idle <= max_idle_bytes_ || idle + used_bytes_ <= most_used_bytes_;
}

bool PinnedPool::GiveUpOne(uint64_t bytes, std::vector<std::byte*>& given_up) {
  auto oldest = idle_.end();
  for (auto kept = idle_.begin(); kept != idle_.end(); ++kept) {
    if (kept->first == bytes) continue;
    if (oldest == idle_.end() ||
        kept->second.last_return < oldest->second.last_return) {
      oldest = kept;
    }
  }
  if (oldest == idle_.end()) return false;
  given_up.push_back(oldest->second.blocks.back());
  oldest->second.blocks.pop_back();
  idle_bytes_ -= oldest->first;
  if (oldest->second.blocks.empty()) idle_.erase(oldest);
  return true;
}

void PinnedPool::Return(std::byte* block, uint64_t bytes) {
  std::vector<std::byte*> given_up;
  {
    const MutexLock lock(&mutex_);
    used_bytes_ -= bytes;
    while (!MayKeep(bytes) && GiveUpOne(bytes, given_up)) {
    }
    if (MayKeep(bytes)) {
      Kept& kept = idle_[bytes];
      kept.blocks.push_back(block);
      kept.last_return = ++returns_;
      idle_bytes_ += bytes;
    } else {
      given_up.push_back(block);
    }
  }
  for (std::byte* one : given_up) Unpin(one);
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
