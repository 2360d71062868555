// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "client/cuda/merge_rows.cuh"

namespace millrace::testing {
namespace {

constexpr int64_t kHeldRows = 7;

// Byte `at` of a row that is held or was received.
std::byte ByteOf(bool held, uint64_t row, uint64_t at) {
  return static_cast<std::byte>((held ? 3 : 140) + row * 11 + at);
}

// Rows in memory of their size only, so that AddressSanitizer finds accesses
// beyond it. std::vector's memory is aligned for the widest words.
std::vector<std::byte> Rows(bool held, uint64_t count, uint64_t row_bytes) {
  std::vector<std::byte> bytes;
  for (uint64_t row = 0; row < count; ++row) {
    for (uint64_t b = 0; b < row_bytes; ++b) {
      bytes.push_back(ByteOf(held, row, b));
    }
  }
  return bytes;
}

template <typename Word>
void ExpectMerged(uint64_t row_bytes, const std::vector<int64_t>& places) {
  SCOPED_TRACE(::testing::Message()
               << row_bytes << " bytes in words of " << sizeof(Word));
  const std::vector<std::byte> held = Rows(true, kHeldRows, row_bytes);
  const std::vector<std::byte> received = Rows(false, places.size(), row_bytes);
  std::vector<std::byte> merged(places.size() * row_bytes, std::byte{0xCD});
  ThreadQueue queue;
  const unsigned bits = cuda::RowThreadBits(row_bytes / sizeof(Word));
  queue.LaunchEach(cuda::MergeRows<Word>, places.size() << bits,
                   cuda::RowsToMerge{.held = held.data(),
                                     .received = received.data(),
                                     .places = places.data(),
                                     .count = places.size(),
                                     .row_bytes = row_bytes},
                   bits, reinterpret_cast<Word*>(merged.data()));
  for (size_t i = 0; i < places.size(); ++i) {
    for (uint64_t b = 0; b < row_bytes; ++b) {
      const std::byte want =
          places[i] < 0 ? ByteOf(false, i, b)
                        : ByteOf(true, static_cast<uint64_t>(places[i]), b);
      ASSERT_EQ(merged[i * row_bytes + b], want) << "byte " << b << " of " << i;
    }
  }
}

// Held rows in any order, also twice, among received ones.
const std::vector<int64_t> kMixed = {6, -1, 0, 3, -1, 3, -9, 1, 2, -1, 5};

TEST(MergeRowsTest, CopiesRowsOfAnyWidth) {
  ExpectMerged<uint8_t>(1, kMixed);
  ExpectMerged<uint8_t>(7, kMixed);
  ExpectMerged<uint16_t>(6, kMixed);
  ExpectMerged<uint32_t>(12, kMixed);
  ExpectMerged<uint64_t>(40, kMixed);
  ExpectMerged<cuda::WideWord>(16, kMixed);
  ExpectMerged<cuda::WideWord>(48, kMixed);
  // A warp for each row: one word for each of its threads, more, and fewer.
  for (const uint64_t words : {32, 33, 70, 31}) {
    ExpectMerged<uint32_t>(4 * words, kMixed);
  }
}

TEST(MergeRowsTest, CopiesRowsThatAreAllOfOneKind) {
  ExpectMerged<uint32_t>(8, std::vector<int64_t>(5, -1));
  ExpectMerged<uint32_t>(8, std::vector<int64_t>(9, 4));
  ExpectMerged<uint32_t>(8, {-1});
  ExpectMerged<uint32_t>(8, {0});
}

TEST(RowWordsTest, TakesTheWidestWordThatIsAligned) {
  const auto width = [](uint64_t addresses) {
    size_t bytes = 0;
    cuda::WithWidestWord(addresses,
                         [&]<typename Word>(Word) { bytes = sizeof(Word); });
    return bytes;
  };
  EXPECT_EQ(width(0x1000 | 3), 1);
  EXPECT_EQ(width(0x1000 | 6), 2);
  EXPECT_EQ(width(0x1000 | 12), 4);
  EXPECT_EQ(width(0x1000 | 24), 8);
  EXPECT_EQ(width(0x1000 | 16), 16);
  EXPECT_EQ(width(0x1000), 16);
}

}  // namespace
}  // namespace millrace::testing
