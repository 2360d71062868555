// SPDX-License-Identifier: Apache-2.0
#include "common/base/random_hex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

TEST(RandomHexTest, HasAsManyDigitsAsAsked) {
  for (const size_t digits : {0u, 1u, 8u, 11u, 32u}) {
    const std::string text = RandomHex(digits);
    EXPECT_THAT(text, SizeIs(digits));
    EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos)
        << text;
  }
}

// Two of 1000 texts of 64 bits are the same with a probability of 3e-14.
TEST(RandomHexTest, TextsDiffer) {
  std::set<std::string> texts;
  for (int i = 0; i < 1000; ++i) texts.insert(RandomHex(16));
  EXPECT_THAT(texts, SizeIs(1000));
}

// Leading zeros are not lost: each digit takes all values. A value is missing
// at one of the 16 places with a probability of 256 (15/16)^1000, 2e-26.
TEST(RandomHexTest, EveryDigitTakesAllValues) {
  std::vector<std::set<char>> values(16);
  for (int i = 0; i < 1000; ++i) {
    const std::string text = RandomHex(16);
    for (size_t place = 0; place < 16; ++place) {
      values[place].insert(text[place]);
    }
  }
  EXPECT_THAT(values, Each(SizeIs(16)));
}

}  // namespace
}  // namespace millrace
