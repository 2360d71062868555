// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/gather_rows.cuh"

namespace millrace::testing {
namespace {

using cuda::FeatureColumn;
using cuda::PartRows;
using cuda::RowTally;

// The largest and most aligned memory that a test needs.
struct alignas(16) Memory {
  std::byte bytes[1 << 14] = {};
};

// Byte `at` of a row of a partition.
std::byte ByteOf(uint64_t part, uint64_t row, uint64_t at) {
  return static_cast<std::byte>(1 + part * 101 + row * 7 + at);
}

// A column of three partitions of 5, 0 and 9 rows, of which 0, 0 and `held` are
// in two shares. If `all_pinned`, all are in pinned memory too. A partition
// that the column does not have follows in memory.
class TestColumn {
 public:
  TestColumn(uint64_t row_bytes, uint64_t held, bool all_pinned = true)
      : row_bytes_(row_bytes), all_pinned_(all_pinned) {
    Add(0, 5, 0);
    Add(5, 0, 0);
    Add(5, 9, held);
    Add(14, 1, 0);
  }

  // The shares that are not within reach are null.
  FeatureColumn Reach(bool first, bool second) {
    shares_[0] = first ? share_memory_[0].bytes : nullptr;
    shares_[1] = second ? share_memory_[1].bytes : nullptr;
    return {.parts = parts_.data(),
            .part_count = 3,
            .share_count = 2,
            .shares = shares_,
            .row_bytes = row_bytes_};
  }

  // The bytes of node `id`.
  std::vector<std::byte> Row(uint64_t id) const {
    return id < 5 ? Row(0, id) : Row(2, id - 5);
  }
  std::vector<std::byte> Row(uint32_t part, uint64_t row) const {
    std::vector<std::byte> bytes;
    for (uint64_t b = 0; b < row_bytes_; ++b) {
      bytes.push_back(ByteOf(part, row, b));
    }
    return bytes;
  }

 private:
  void Add(uint64_t first_id, uint64_t count, uint64_t held) {
    const auto part = static_cast<uint32_t>(parts_.size());
    constexpr uint64_t kAt = 48;
    std::byte* pinned = pinned_memory_[part].bytes;
    for (uint64_t row = 0; row < count; ++row) {
      const std::vector<std::byte> bytes = Row(part, row);
      if (row < held) {
        std::memcpy(share_memory_[row % 2].bytes + kAt + row / 2 * row_bytes_,
                    bytes.data(), row_bytes_);
      }
      if (row >= held || all_pinned_) {
        std::memcpy(pinned + row * row_bytes_, bytes.data(), row_bytes_);
      }
    }
    parts_.push_back({first_id, count, held, kAt, pinned});
  }

  const uint64_t row_bytes_;
  const bool all_pinned_;
  std::vector<PartRows> parts_;
  Memory share_memory_[2], pinned_memory_[4];
  const std::byte* shares_[2] = {};
};

struct Gathered {
  std::vector<std::vector<std::byte>> rows;
  RowTally tally;
};

// Gathers rows of `parts`, or nodes if it is empty.
template <typename Word>
Gathered Gather(const FeatureColumn& column, const std::vector<uint64_t>& rows,
                const std::vector<uint32_t>& parts = {}) {
  Memory to;
  std::memset(to.bytes, 0xCD, sizeof to.bytes);
  Gathered gathered;
  ThreadQueue queue;
  const unsigned bits = cuda::RowThreadBits(column.row_bytes / sizeof(Word));
  queue.LaunchEach(cuda::GatherWantedRows<Word>, rows.size() << bits, column,
                   cuda::WantedRows{parts.empty() ? nullptr : parts.data(),
                                    rows.data(), rows.size()},
                   bits, reinterpret_cast<Word*>(to.bytes), &gathered.tally);
  const std::byte* row = to.bytes;
  for (size_t i = 0; i < rows.size(); ++i, row += column.row_bytes) {
    gathered.rows.emplace_back(row, row + column.row_bytes);
  }
  EXPECT_EQ(*row, std::byte{0xCD});
  return gathered;
}

// Gathers all nodes, some of them twice.
template <typename Word>
void ExpectRows(uint64_t row_bytes) {
  TestColumn column(row_bytes, /*held=*/6, /*all_pinned=*/false);
  const std::vector<uint64_t> ids = {13, 0,  4, 5, 6, 12, 7, 8,
                                     9,  10, 1, 2, 3, 11, 5, 13};
  const Gathered gathered = Gather<Word>(column.Reach(true, true), ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(gathered.rows[i], column.Row(ids[i])) << ids[i];
  }
  EXPECT_EQ(gathered.tally.trouble, 0);
  // Ids 5 to 10, and 5 once more.
  EXPECT_EQ(gathered.tally.device_rows, 7);
}

TEST(GatherRowsTest, CopiesRowsOfAnyWidth) {
  ExpectRows<uint8_t>(1);
  ExpectRows<uint8_t>(7);
  ExpectRows<uint16_t>(6);
  ExpectRows<uint32_t>(12);
  ExpectRows<uint64_t>(40);
  ExpectRows<cuda::WideWord>(16);
  ExpectRows<cuda::WideWord>(48);
  // A warp for each row: one word for each of its threads, more, and fewer.
  ExpectRows<uint32_t>(128);
  ExpectRows<uint16_t>(130);
  ExpectRows<uint8_t>(31);
  ExpectRows<uint8_t>(333);
}

TEST(GatherRowsTest, SharesRowsAmongThreads) {
  EXPECT_EQ(cuda::RowThreadBits(1), 0);
  EXPECT_EQ(cuda::RowThreadBits(2), 1);
  EXPECT_EQ(cuda::RowThreadBits(3), 2);
  EXPECT_EQ(cuda::RowThreadBits(16), 4);
  EXPECT_EQ(cuda::RowThreadBits(17), 5);
  EXPECT_EQ(cuda::RowThreadBits(1433), 5);
}

TEST(GatherRowsTest, ReadsSharesOutOfReachInPinnedMemory) {
  TestColumn column(12, /*held=*/9);
  const std::vector<uint64_t> ids = {5, 6, 7, 8, 13};
  for (const bool first : {false, true}) {
    const Gathered gathered =
        Gather<uint32_t>(column.Reach(first, !first), ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(gathered.rows[i], column.Row(ids[i])) << ids[i];
    }
    EXPECT_EQ(gathered.tally.trouble, 0);
    EXPECT_EQ(gathered.tally.device_rows, first ? 3 : 2);
  }
}

TEST(GatherRowsTest, FindsRowsOfPartitions) {
  TestColumn column(8, /*held=*/4, /*all_pinned=*/false);
  const std::vector<uint32_t> parts = {2, 0, 2, 0};
  const std::vector<uint64_t> rows = {8, 4, 3, 0};
  const Gathered gathered =
      Gather<uint64_t>(column.Reach(true, true), rows, parts);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(gathered.rows[i], column.Row(parts[i], rows[i])) << i;
  }
  EXPECT_EQ(gathered.tally.trouble, 0);
  EXPECT_EQ(gathered.tally.device_rows, 1);
}

TEST(GatherRowsTest, ReportsRowsThatDoNotExist) {
  TestColumn column(4, /*held=*/9, /*all_pinned=*/false);
  const FeatureColumn reached = column.Reach(true, true);
  const std::vector<std::byte> zeros(4);
  for (const uint64_t id : {uint64_t{14}, ~uint64_t{0}}) {
    const Gathered gathered = Gather<uint32_t>(reached, {13, id, 5});
    EXPECT_EQ(gathered.tally.trouble, cuda::kBadRow);
    EXPECT_EQ(gathered.rows[0], column.Row(13));
    EXPECT_EQ(gathered.rows[1], zeros);
    EXPECT_EQ(gathered.rows[2], column.Row(5));
  }
  const auto trouble = [&](uint32_t part, uint64_t row) {
    return Gather<uint32_t>(reached, {row}, {part}).tally.trouble;
  };
  EXPECT_EQ(trouble(0, 4), 0);
  EXPECT_EQ(trouble(0, 5), cuda::kBadRow);
  EXPECT_EQ(trouble(1, 0), cuda::kBadRow);
  EXPECT_EQ(trouble(3, 0), cuda::kBadRow);
  EXPECT_EQ(trouble(~0u, 0), cuda::kBadRow);
}

}  // namespace
}  // namespace millrace::testing
