// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "client/remote/device_cache.h"
#include "common/base/check.h"
#include "common/base/mutex.h"

namespace millrace::testing {

// Keeps rows in memory of the host that passes for that of a GPU, so that
// Array::As() of them ends the program.
class FakeDeviceCache final : public DeviceCache {
 public:
  explicit FakeDeviceCache(int device = 0) : device_(device) {}

  // The same array, for the host to read.
  static Array OnHost(const Array& array) {
    if (!array.present()) return array;
    return Array::Borrow(array.dtype(), array.shape(), array.data(),
                         std::make_shared<const Array>(array));
  }

  int device() const override { return device_; }
  absl::StatusOr<uint64_t> FreeBytes() override { return free_bytes_; }

  absl::StatusOr<Array> Allocate(DType dtype,
                                 std::vector<int64_t> shape) override {
    MutexLock lock(&mutex_);
    if (!allocation_error_.ok()) return allocation_error_;
    Array held = OnDevice(Array::Allocate(dtype, std::move(shape)));
    std::memset(held.mutable_data(), 0xCD, held.total_bytes());
    held_rows_ += held.rows();
    return held;
  }

  absl::Status Write(const Array& rows, int64_t first, Array held) override {
    MILLRACE_CHECK(rows.on_host() && held.device() == device_ && first >= 0 &&
                   first + rows.rows() <= held.rows() &&
                   rows.dtype() == held.dtype() &&
                   rows.row_bytes() == held.row_bytes());
    MutexLock lock(&mutex_);
    if (!write_error_.ok()) return write_error_;
    std::memcpy(
        held.mutable_data() + static_cast<uint64_t>(first) * held.row_bytes(),
        rows.data(), rows.total_bytes());
    written_rows_ += rows.rows();
    return absl::OkStatus();
  }

  absl::StatusOr<Array> Merge(const Array& held,
                              std::span<const int64_t> places,
                              const Array& received) override {
    MILLRACE_CHECK(received.on_host() && held.device() == device_ &&
                   static_cast<int64_t>(places.size()) == received.rows() &&
                   received.dtype() == held.dtype() &&
                   received.row_bytes() == held.row_bytes());
    const Notification* gate = nullptr;
    {
      MutexLock lock(&mutex_);
      ++merges_;
      if (!merge_error_.ok()) return merge_error_;
      gate = gate_;
    }
    if (gate != nullptr) gate->WaitForNotification();
    Array merged =
        OnDevice(Array::Allocate(received.dtype(), received.shape()));
    const size_t row_bytes = received.row_bytes();
    for (size_t i = 0; i < places.size(); ++i) {
      MILLRACE_CHECK(places[i] < held.rows());
      const std::byte* from =
          places[i] < 0
              ? received.data() + i * row_bytes
              : held.data() + static_cast<uint64_t>(places[i]) * row_bytes;
      std::memcpy(merged.mutable_data() + i * row_bytes, from, row_bytes);
    }
    return merged;
  }

  // Change how later calls end. A merge first waits for `gate`, which must
  // outlive it.
  void SetFreeBytes(uint64_t bytes) { free_bytes_ = bytes; }
  void FailAllocation(const absl::Status& status) {
    MutexLock lock(&mutex_);
    allocation_error_ = status;
  }
  void FailWrite(const absl::Status& status) {
    MutexLock lock(&mutex_);
    write_error_ = status;
  }
  void FailMerge(const absl::Status& status) {
    MutexLock lock(&mutex_);
    merge_error_ = status;
  }
  void HoldMerge(const Notification* gate) {
    MutexLock lock(&mutex_);
    gate_ = gate;
  }

  // What has been done so far.
  int64_t held_rows() const {
    MutexLock lock(&mutex_);
    return held_rows_;
  }
  int64_t written_rows() const {
    MutexLock lock(&mutex_);
    return written_rows_;
  }
  int merges() const {
    MutexLock lock(&mutex_);
    return merges_;
  }

 private:
  Array OnDevice(const Array& array) const {
    return Array::Borrow(array.dtype(), array.shape(), array.data(),
                         std::make_shared<const Array>(array), device_);
  }

  const int device_;
  uint64_t free_bytes_ = uint64_t{1} << 30;
  mutable Mutex mutex_;
  absl::Status allocation_error_ ABSL_GUARDED_BY(mutex_);
  absl::Status write_error_ ABSL_GUARDED_BY(mutex_);
  absl::Status merge_error_ ABSL_GUARDED_BY(mutex_);
  const Notification* gate_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t held_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t written_rows_ ABSL_GUARDED_BY(mutex_) = 0;
  int merges_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace::testing
