// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

namespace millrace::cuda {

// An array in a queue's memory, which is kept until the object is destroyed.
// The queue must outlive it.
template <typename Queue, typename T>
class DeviceArray {
 public:
  explicit DeviceArray(Queue& queue) : queue_(&queue) {}
  ~DeviceArray() {
    if (data_ != nullptr) queue_->Free(data_);
  }
  DeviceArray(DeviceArray&& other) noexcept
      : queue_(other.queue_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&&) = delete;

  // Makes room for `size` elements and keeps the first `used`; the others are
  // uninitialised. False if there is not enough memory.
  bool Reserve(uint64_t size, uint64_t used = 0) {
    if (size <= size_) return true;
    auto* grown = static_cast<T*>(queue_->Allocate(size * sizeof(T)));
    if (grown == nullptr) return false;
    if (used > 0) queue_->Copy(grown, data_, used * sizeof(T));
    if (data_ != nullptr) queue_->Free(data_);
    data_ = grown;
    size_ = size;
    return true;
  }

  T* data() const { return data_; }
  uint64_t size() const { return size_; }

 private:
  Queue* queue_;
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace millrace::cuda
