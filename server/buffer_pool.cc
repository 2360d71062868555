// SPDX-License-Identifier: Apache-2.0
#include "server/buffer_pool.h"

#include <new>

namespace millrace {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

BufferPool::Shelf::~Shelf() {
  absl::MutexLock lock(&mutex);
  for (std::byte* buffer : unused) ::operator delete(buffer, kAlignment);
}

BufferPool::BufferPool(size_t buffer_bytes, size_t kept)
    : buffer_bytes_(buffer_bytes),
      kept_(kept),
      shelf_(std::make_shared<Shelf>()) {}

std::shared_ptr<std::byte> BufferPool::Take() {
  std::byte* buffer = nullptr;
  {
    absl::MutexLock lock(&shelf_->mutex);
    if (!shelf_->unused.empty()) {
      buffer = shelf_->unused.back();
      shelf_->unused.pop_back();
    }
  }
  if (buffer == nullptr) {
    buffer = static_cast<std::byte*>(::operator new(buffer_bytes_, kAlignment));
  }
  return {buffer, [shelf = shelf_, kept = kept_](std::byte* done) {
            {
              absl::MutexLock lock(&shelf->mutex);
              if (shelf->unused.size() < kept) {
                shelf->unused.push_back(done);
                return;
              }
            }
            ::operator delete(done, kAlignment);
          }};
}

}  // namespace millrace
