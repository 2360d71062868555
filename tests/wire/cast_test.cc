// SPDX-License-Identifier: Apache-2.0
#include "common/wire/cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace millrace {
namespace {

uint16_t Cast(float value, DType to) {
  uint16_t out = 0;
  CastElements(DType::kFloat32, reinterpret_cast<const std::byte*>(&value), to,
               reinterpret_cast<std::byte*>(&out), 1);
  return out;
}

// The value of float16 bits, by the definition of the format.
double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(CastTest, KeepsEveryFloat16) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 31) == 31) continue;  // infinities and NaN: below
    const auto value = static_cast<float>(HalfValue(bits));
    EXPECT_EQ(Cast(value, DType::kFloat16), bits) << value;
  }
}

TEST(CastTest, RoundsToTheNearestEvenFloat16) {
  // Halfway between neighbours goes to the even one, beyond it to the next.
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfValue(bits);
    const double high = HalfValue(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    EXPECT_EQ(Cast(middle, DType::kFloat16), bits + (bits & 1));
    EXPECT_EQ(Cast(std::nextafter(middle, 1e9f), DType::kFloat16), bits + 1);
    EXPECT_EQ(Cast(std::nextafter(middle, -1e9f), DType::kFloat16), bits);
  }
}

TEST(CastTest, TurnsTooLargeIntoInfinityAndKeepsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Cast(65504, DType::kFloat16), 0x7bff);
  EXPECT_EQ(Cast(65520, DType::kFloat16), 0x7c00);
  EXPECT_EQ(Cast(-infinity, DType::kFloat16), 0xfc00);
  EXPECT_EQ(Cast(NAN, DType::kFloat16) & 0x7fff, 0x7e00);
  EXPECT_EQ(Cast(infinity, DType::kBFloat16), 0x7f80);
  EXPECT_GT(Cast(NAN, DType::kBFloat16) & 0x7fff, 0x7f80);
}

TEST(CastTest, RoundsToTheNearestEvenBFloat16) {
  EXPECT_EQ(Cast(1.0f, DType::kBFloat16), 0x3f80);
  EXPECT_EQ(Cast(1.0f + 0x1p-8f, DType::kBFloat16), 0x3f80);
  EXPECT_EQ(Cast(1.0f + 0x3p-8f, DType::kBFloat16), 0x3f82);
  EXPECT_EQ(Cast(1.0f + 0x1.1p-8f, DType::kBFloat16), 0x3f81);
}

TEST(CastTest, WidensBeforeNarrowing) {
  const std::vector<uint16_t> in = {0x3c00, 0xc000, 0x0001};  // 1, -2, 2^-24
  std::vector<uint16_t> out(3);
  CastElements(DType::kFloat16, reinterpret_cast<const std::byte*>(in.data()),
               DType::kBFloat16, reinterpret_cast<std::byte*>(out.data()), 3);
  EXPECT_EQ(out, (std::vector<uint16_t>{0x3f80, 0xc000, 0x3380}));
  const double wide = 0.5;
  CastElements(DType::kFloat64, reinterpret_cast<const std::byte*>(&wide),
               DType::kFloat16, reinterpret_cast<std::byte*>(out.data()), 1);
  EXPECT_EQ(out[0], 0x3800);
}

TEST(CastTest, NarrowsFloatsOnly) {
  EXPECT_TRUE(CanCast(DType::kFloat32, DType::kFloat16));
  EXPECT_TRUE(CanCast(DType::kInt64, DType::kInt64));
  EXPECT_FALSE(CanCast(DType::kInt64, DType::kFloat16));
  EXPECT_FALSE(CanCast(DType::kFloat16, DType::kFloat32));
}

}  // namespace
}  // namespace millrace
