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

// How an array becomes one of a batch.
struct ArrayForm {
  bool narrowed = false;  // from 64-bit elements
  bool stays = false;     // on the device
};

// Arrays of the device that kernels write into one block of pinned memory, and
// those that stay there into one of the device's. There is room for the most
// elements that each may have, so that the host need not know how many there
// are before it waits.
class Downloads {
 public:
  struct Blocks {
    std::shared_ptr<std::byte> pinned;
    std::shared_ptr<std::byte> device = nullptr;  // null if there are no bytes
  };

  // `counters` are those that counts of arrays point into, in the memory of
  // `device`.
  explicit Downloads(std::span<const uint64_t> counters, int device = kHost)
      : device_counters_(counters.data()), device_(device) {
    Add(counters.data(), DType::kUint64, {.more = counters.size()}, counters_);
  }
  Downloads(const Downloads&) = delete;
  Downloads& operator=(const Downloads&) = delete;

  // `target` becomes an array of what is at `from`; see Finish().
  void Add(const void* from, DType dtype, const CountedRows& rows,
           Array& target, ArrayForm form = {}) {
    uint64_t& bytes = form.stays ? device_bytes_ : pinned_bytes_;
    entries_.push_back({from, dtype, rows, form, bytes, &target});
    bytes += RoundUp(rows.most() * ItemBytes(dtype), kAlignment);
  }

  // The sizes of the blocks.
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t device_bytes() const { return device_bytes_; }

  // Starts to copy. Nobody may use the blocks before the queue has done it.
  template <typename Queue>
  void Start(Queue& queue, Blocks blocks) {
    blocks_ = std::move(blocks);
    ArrayCopies copies;
    uint64_t most = 0;
    for (const Entry& entry : entries_) {
      if (entry.rows.most() == 0) continue;
      most = std::max(most, entry.rows.most());
      copies.copies[copies.count++] = {.from = entry.from,
                                       .to = BlockOf(entry).get() + entry.at,
                                       .count = entry.rows.count,
                                       .more = entry.rows.more,
                                       .wide = ItemBytes(entry.dtype) == 8,
                                       .narrowed = entry.form.narrowed};
      if (copies.count < ArrayCopies::kMax) continue;
      queue.LaunchEach(CopyArrays, most, copies);
      copies.count = 0;
      most = 0;
    }
    if (copies.count > 0) queue.LaunchEach(CopyArrays, most, copies);
  }

  // Sets all targets, once the copies are done. They share the blocks.
  void Finish() {
    for (const Entry& entry : entries_) {
      uint64_t rows = entry.rows.more;
      if (entry.rows.count != nullptr) {
        rows += counters()[static_cast<size_t>(entry.rows.count -
                                               device_counters_)];
      }
      *entry.target =
          Array::Borrow(entry.dtype, {static_cast<int64_t>(rows)},
                        BlockOf(entry).get() + entry.at, BlockOf(entry),
                        entry.form.stays ? device_ : kHost);
    }
  }

  // The counters, once the copies are done.
  std::span<const uint64_t> counters() const {
    return {reinterpret_cast<const uint64_t*>(blocks_.pinned.get()),
            entries_.front().rows.more};
  }

 private:
  static constexpr uint64_t kAlignment = 64;

  struct Entry {
    const void* from;
    DType dtype;  // of the target
    CountedRows rows;
    ArrayForm form;
    uint64_t at;  // in its block
    Array* target;
  };

  const std::shared_ptr<std::byte>& BlockOf(const Entry& entry) const {
    return entry.form.stays ? blocks_.device : blocks_.pinned;
  }

  const uint64_t* const device_counters_;
  const int device_;
  std::vector<Entry> entries_;  // the counters first
  uint64_t pinned_bytes_ = 0, device_bytes_ = 0;
  Blocks blocks_;
  Array counters_;
};

}  // namespace millrace::cuda
