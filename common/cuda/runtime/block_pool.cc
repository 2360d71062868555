// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/block_pool.h"

#include <algorithm>
#include <bit>

#include "common/base/round_up.h"
#include "common/base/status_macros.h"

namespace millrace::cuda {
namespace {

constexpr uint64_t kSmallestBlock = 4096;

}  // namespace

uint64_t BlockPool::BlockBytes(uint64_t bytes) {
  const uint64_t least = std::max(bytes, kSmallestBlock);
  return RoundUp(least, std::bit_floor(least) / 8);
}

void BlockPool::DropIdle() {
  std::map<uint64_t, Kept> dropped;
  {
    const MutexLock lock(&mutex_);
    dropped.swap(idle_);
    idle_bytes_ = 0;
  }
  for (const auto& [bytes, kept] : dropped) {
    for (std::byte* block : kept.blocks) Free(block);
  }
}

std::byte* BlockPool::TakeKept(uint64_t bytes) {
  const MutexLock lock(&mutex_);
  const auto kept = idle_.find(bytes);
  if (kept == idle_.end()) return nullptr;
  std::byte* block = kept->second.blocks.back();
  kept->second.blocks.pop_back();
  if (kept->second.blocks.empty()) idle_.erase(kept);
  idle_bytes_ -= bytes;
  return block;
}

absl::StatusOr<std::shared_ptr<std::byte>> BlockPool::Allocate(uint64_t bytes) {
  const uint64_t size = BlockBytes(bytes);
  std::byte* block = TakeKept(size);
  if (block == nullptr) {
    absl::StatusOr<std::byte*> made = Make(size);
    if (absl::IsResourceExhausted(made.status())) {
      DropIdle();
      made = Make(size);
    }
    MILLRACE_RETURN_IF_ERROR(made.status());
    block = *made;
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

bool BlockPool::MayKeep(uint64_t bytes) const {
  const uint64_t idle = idle_bytes_ + bytes;
  return idle <= max_idle_bytes_ || idle + used_bytes_ <= most_used_bytes_;
}

bool BlockPool::GiveUpOne(uint64_t bytes, std::vector<std::byte*>& given_up) {
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

void BlockPool::Return(std::byte* block, uint64_t bytes) {
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
  for (std::byte* one : given_up) Free(one);
}

uint64_t BlockPool::idle_bytes() const {
  const MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace millrace::cuda
