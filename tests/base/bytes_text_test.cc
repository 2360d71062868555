// SPDX-License-Identifier: Apache-2.0
#include "common/base/bytes_text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace millrace {
namespace {

TEST(BytesTextTest, ChoosesAUnit) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1000), "1000 bytes");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(1024), "1.0 KiB");
  EXPECT_EQ(BytesText(uint64_t{64} << 30), "64.0 GiB");
  EXPECT_EQ(BytesText(uint64_t{5} << 39), "2.5 TiB");
  EXPECT_EQ(BytesText(uint64_t{7} << 50), "7.0 PiB");
  EXPECT_EQ(BytesText(0x1p64), "16.0 EiB");
}

// Never "1024.0 MiB".
TEST(BytesTextTest, RoundsToTheNextUnit) {
  EXPECT_EQ(BytesText(1023.4), "1023 bytes");
  EXPECT_EQ(BytesText(1023.6), "1.0 KiB");
  EXPECT_EQ(BytesText((1 << 20) - 52), "1023.9 KiB");
  EXPECT_EQ(BytesText((1 << 20) - 51), "1.0 MiB");
}

// Estimates may exceed 64 bits.
TEST(BytesTextTest, TakesAnyAmount) {
  EXPECT_EQ(BytesText(0x1p74), "16384.0 EiB");
}

}  // namespace
}  // namespace millrace
