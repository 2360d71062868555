// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/array.h"
#include "common/base/round_up.h"
#include "common/cuda/sample/copy_arrays.cuh"
#include "common/cuda/sample/hop_job.h"

namespace millrace::cuda {

// Arrays of the device that kernels write into one block of pinned memory.
// There is room for the most elements that each may have, so that the host need
// not know how many there are before it waits.
class Downloads {
 public:
  // `counters` are those that counts of arrays point into, in the memory of the
  // device.
  explicit Downloads(std::span<const uint64_t> counters)
      : device_counters_(counters.data()) {
    Add(counters.data(), DType::kUint64, {.more = counters.size()}, counters_);
  }
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;

  // `target` becomes an array of what is at `from`; see Finish(). 64-bit
  // elements are narrowed if `narrowed`.
  void Add(const void* from, DType dtype, const CountedRows& rows,
           Array& target, bool narrowed = false) {
    entries_.push_back({from, dtype, rows, narrowed, bytes_, &target});
    const uint64_t size = rows.most() * ItemBytes(dtype);
    bytes_ += RoundUp(size, kAlignment);
  }

  // The size of the block.
  uint64_t bytes() const { return bytes_; }

  // Starts to copy. Nobody may use the block before the queue has done it.
  template <typename Queue>
  void Start(Queue& queue, std::shared_ptr<std::byte> block) {
    block_ = std::move(block);
    ArrayCopies copies;
    uint64_t most = 0;
    for (const Entry& entry : entries_) {
      if (entry.rows.most() == 0) continue;
      most = std::max(most, entry.rows.most());
      copies.copies[copies.count++] = {.from = entry.from,
                                       .to = block_.get() + entry.at,
                                       .count = entry.rows.count,
                                       .more = entry.rows.more,
                                       .wide = ItemBytes(entry.dtype) == 8,
                                       .narrowed = entry.narrowed};
      if (copies.count < ArrayCopies::kMax) continue;
      queue.LaunchEach(CopyArrays, most, copies);
      copies.count = 0;
      most = 0;
    }
    if (copies.count > 0) queue.LaunchEach(CopyArrays, most, copies);
  }

  // Sets all targets, once the copies are done. They share the block.
  void Finish() {
    for (const Entry& entry : entries_) {
      uint64_t rows = entry.rows.more;
      if (entry.rows.count != nullptr) {
        rows += counters()[static_cast<size_t>(entry.rows.count -
                                               device_counters_)];
      }
      *entry.target = Array::Borrow(entry.dtype, {static_cast<int64_t>(rows)},
                                    block_.get() + entry.at, block_);
    }
  }

  // The counters, once the copies are done.
  std::span<const uint64_t> counters() const {
    return {reinterpret_cast<const uint64_t*>(block_.get()),
            entries_.front().rows.more};
  }

 private:
  static constexpr uint64_t kAlignment = 64;

  struct Entry {
    const void* from;
    DType dtype;  // of the target
    CountedRows rows;
    bool narrowed;
    uint64_t at;  // in the block
    Array* target;
  };
  const uint64_t* const device_counters_;
  std::vector<Entry> entries_;  // the counters first
  uint64_t bytes_ = 0;
  std::shared_ptr<std::byte> block_;
  Array counters_;
};

}  // namespace millrace::cuda
