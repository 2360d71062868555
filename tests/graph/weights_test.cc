// SPDX-License-Identifier: Apache-2.0
#include "common/graph/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kTiny = 1.4e-45F;  // 2^-149, the smallest above 0
constexpr uint64_t kHalf = uint64_t{1} << 31;

// A positive float as mantissa * 2^exponent with a mantissa below 2^24, taken
// from its bits.
struct Scaled {
  uint64_t mantissa;
  int exponent;
};
Scaled ScaledOf(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t fraction = bits & 0x7FFFFF;
  const int power = static_cast<int>(bits >> 23);
  if (power == 0) return {fraction, -149};
  return {fraction | 0x800000, power - 150};
}

// floor(value * 2^(32 - e)) computed by shifts, for the e of `largest`.
uint64_t IntegerWeight(float value, float largest) {
  if (value == 0) return 0;
  const Scaled top = ScaledOf(largest);
  int e = top.exponent;
  for (uint64_t m = top.mantissa; m > 0; m /= 2) ++e;
  const Scaled scaled = ScaledOf(value);
  const int shift = scaled.exponent + 32 - e;
  if (shift <= -64) return 1;
  const uint64_t weight =
      shift >= 0 ? scaled.mantissa << shift : scaled.mantissa >> -shift;
  return weight == 0 ? 1 : weight;
}

TEST(WeightSumsTest, KnownAnswers) {
  EXPECT_THAT(WeightSums({}), IsEmpty());
  EXPECT_THAT(WeightSums(std::vector<float>{0, 0, 0}), ElementsAre(0, 0, 0));
  EXPECT_THAT(WeightSums(std::vector<float>{-0.0F, 0}), ElementsAre(0, 0));
  EXPECT_THAT(WeightSums(std::vector<float>{1, 0, 0.5F}),
              ElementsAre(kHalf, kHalf, kHalf + kHalf / 2));
  EXPECT_THAT(WeightSums(std::vector<float>{1, 3}),
              ElementsAre(kHalf / 2, kHalf / 2 + 3 * (kHalf / 2)));
}

TEST(WeightSumsTest, SmallestWeightStaysPositive) {
  constexpr float kLargest = 3.4028234e38F;  // (2^24 - 1) * 2^104
  constexpr uint64_t kTop = 0xFFFFFF00;
  EXPECT_THAT(WeightSums(std::vector<float>{kTiny, kLargest, 0, kTiny, 1}),
              ElementsAre(1, kTop + 1, kTop + 1, kTop + 2, kTop + 3));
}

TEST(WeightSumsTest, DenormalsKeepTheirProportions) {
  EXPECT_THAT(WeightSums(std::vector<float>{kTiny}), ElementsAre(kHalf));
  EXPECT_THAT(WeightSums(std::vector<float>{kTiny, 3 * kTiny}),
              ElementsAre(kHalf / 2, 4 * (kHalf / 2)));
}

TEST(WeightSumsTest, RoundsFractionsOfAUnitDown) {
  // 2^-31 and 1.5 * 2^-31 times the largest weight are one unit each.
  EXPECT_THAT(
      WeightSums(std::vector<float>{1, 4.656612873e-10F, 6.984919309e-10F}),
      ElementsAre(kHalf, kHalf + 1, kHalf + 2));
}

TEST(WeightSumsTest, EqualsTheDefinitionForAllMagnitudes) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> weights(6);
    float largest = 0;
    for (float& weight : weights) {
      // Takes any bits of a finite number that is not negative; some are zero.
      const uint32_t bits =
          random() % 5 == 0 ? 0 : static_cast<uint32_t>(random() % 0x7F800000);
      std::memcpy(&weight, &bits, sizeof weight);
      if (weight > largest) largest = weight;
    }
    uint64_t sum = 0;
    std::vector<uint64_t> want;
    for (const float weight : weights) {
      want.push_back(sum += IntegerWeight(weight, largest));
    }
    ASSERT_EQ(WeightSums(weights), want) << ::testing::PrintToString(weights);
  }
}

}  // namespace
}  // namespace millrace
