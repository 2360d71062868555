// SPDX-License-Identifier: Apache-2.0
#include "common/base/block.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <list>
#include <map>
#include <new>

#include "absl/base/config.h"
#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/round_up.h"

namespace millrace {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kMinKeptBytes = size_t{64} << 10;
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr size_t kMaxKeptBytes = 0;
#else
constexpr size_t kMaxKeptBytes = kKeptBlockBytes;
#endif

void Free(std::byte* data) { ::operator delete(data, kAlignment); }

// Rounds up to a multiple of an eighth of a power of two, so that batches of
// nearly the same size can reuse each other's blocks. The excess pages are
// never touched.
size_t RoundToReusableSize(size_t bytes) {
  return RoundUp(bytes, std::bit_floor(bytes) / 8);
}

// Unused blocks, by size. The oldest are freed when the total exceeds
// kMaxKeptBytes.
class Shelf {
 public:
  // Takes a block of at least `size` bytes but not much more, and sets `size`
  // to its size. Null if there is none.
  std::byte* Take(size_t& size) {
    MutexLock lock(&mutex_);
    const auto found = by_size_.lower_bound(size);
    if (found == by_size_.end() || found->first > size + size / 4) {
      return nullptr;
    }
    size = found->first;
    kept_ -= size;
    std::byte* data = found->second->data;
    by_age_.erase(found->second);
    by_size_.erase(found);
    return data;
  }

  void Give(std::byte* data, size_t size) {
    if (size > kMaxKeptBytes) return Free(data);
    Age dropped;
    {
      MutexLock lock(&mutex_);
      by_age_.push_back({data, size});
      // Ahead of blocks of the same size, so that the block used last is taken
      // first, while it is still in the CPU's cache.
      by_size_.emplace_hint(by_size_.lower_bound(size), size,
                            std::prev(by_age_.end()));
      kept_ += size;
      while (kept_ > kMaxKeptBytes) DropOldest(dropped);
    }
    for (const Kept& block : dropped) Free(block.data);
  }

  size_t kept() {
    MutexLock lock(&mutex_);
    return kept_;
  }

 private:
  struct Kept {
    std::byte* data;
    size_t size;
  };
  using Age = std::list<Kept>;

  void DropOldest(Age& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto oldest = by_age_.begin();
    const auto [first, last] = by_size_.equal_range(oldest->size);
    by_size_.erase(std::find_if(first, last, [&](const auto& entry) {
      return entry.second == oldest;
    }));
    kept_ -= oldest->size;
    dropped.splice(dropped.end(), by_age_, oldest);
  }

  Mutex mutex_;
  Age by_age_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::multimap<size_t, Age::iterator> by_size_ ABSL_GUARDED_BY(mutex_);
  size_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
};

Shelf& ProcessShelf() {
  // Never destroyed: blocks may be freed by other static objects.
  static Shelf* const shelf = new Shelf();
  return *shelf;
}

std::byte* AllocateFresh(size_t size) {
  return static_cast<std::byte*>(::operator new(size, kAlignment));
}

}  // namespace

std::shared_ptr<std::byte> AllocateBlock(size_t bytes) {
  if (bytes < kMinKeptBytes) return {AllocateFresh(bytes), Free};
  size_t size = RoundToReusableSize(bytes);
  std::byte* data = ProcessShelf().Take(size);
  if (data == nullptr) data = AllocateFresh(size);
  return {data, [size](std::byte* done) { ProcessShelf().Give(done, size); }};
}

size_t KeptBlockBytes() { return ProcessShelf().kept(); }

void KeepFreedMemory() {
  mallopt(M_ARENA_MAX, 16);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, int{kKeptBlockBytes});
}

}  // namespace millrace
