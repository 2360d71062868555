// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/gather_rows.cuh"

namespace millrace::testing {
namespace {

template <typename Word>
std::vector<Word> Gathered(uint64_t row_words,
                           const std::vector<uint64_t>& rows,
                           uint32_t& trouble) {
  constexpr uint64_t kRows = 50;
  std::vector<Word> column(kRows * row_words);
  std::iota(column.begin(), column.end(), Word{1});
  std::vector<Word> to(rows.size() * row_words, Word{99});
  ThreadQueue queue;
  queue.LaunchEach(cuda::GatherRows<Word>, to.size(),
                   cuda::RowColumn<Word>{column.data(), kRows, row_words},
                   rows.data(), uint64_t{rows.size()}, to.data(), &trouble);
  return to;
}

TEST(GatherRowsTest, CopiesRowsOfAnyWidth) {
  uint32_t trouble = 0;
  EXPECT_EQ(Gathered<uint32_t>(3, {0, 49, 2, 2}, trouble),
            (std::vector<uint32_t>{1, 2, 3, 148, 149, 150, 7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(Gathered<uint8_t>(1, {10}, trouble), std::vector<uint8_t>{11});
  EXPECT_EQ(Gathered<uint64_t>(2, {1}, trouble), (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(trouble, 0u);
}

TEST(GatherRowsTest, ReportsRowsBeyondTheColumn) {
  uint32_t trouble = 0;
  EXPECT_EQ(Gathered<uint32_t>(1, {4, 50, ~uint64_t{0}}, trouble),
            (std::vector<uint32_t>{5, 0, 0}));
  EXPECT_EQ(trouble, cuda::kBadRow);
}

}  // namespace
}  // namespace millrace::testing
