// SPDX-License-Identifier: Apache-2.0
#include "common/base/float_cast.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "common/base/float16.h"
#include "common/base/float_narrow.h"

namespace millrace {
namespace {

// The value of float16 bits, by the definition of the format.
double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

bool IsFinite(uint16_t half) { return (half >> 10 & 31) != 31; }

TEST(Float16Test, EveryValueIsItsOwnNearest) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = FromFloat16(half);
    if (!IsFinite(half)) {
      EXPECT_EQ(std::isnan(value), (bits & 1023) != 0);
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
    } else {
      EXPECT_EQ(value, HalfValue(half));
    }
    // A signalling NaN becomes a quiet one.
    EXPECT_EQ(ToFloat16(value), std::isnan(value) ? half | 0x200 : half);
  }
}

TEST(Float16Test, RoundsToTheNearestEven) {
  // A value halfway between two neighbours is rounded to the even one, a larger
  // one to the next.
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfValue(bits);
    const double high = HalfValue(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    EXPECT_EQ(ToFloat16(middle), bits + (bits & 1));
    EXPECT_EQ(ToFloat16(std::nextafter(middle, 1e9F)), bits + 1);
    EXPECT_EQ(ToFloat16(std::nextafter(middle, -1e9F)), bits);
    EXPECT_EQ(ToFloat16(-middle), 0x8000 | (bits + (bits & 1)));
  }
}

TEST(Float16Test, OverflowsToInfinityAndKeepsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ToFloat16(65504), 0x7bff);
  EXPECT_EQ(ToFloat16(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(ToFloat16(65520), 0x7c00);
  EXPECT_EQ(ToFloat16(-infinity), 0xfc00);
  EXPECT_EQ(ToFloat16(std::bit_cast<float>(0x7f801fffU)), 0x7e00);
  EXPECT_EQ(ToFloat16(std::bit_cast<float>(0xffbfe000U)), 0xffff);
}

TEST(BFloat16Test, RoundsToTheNearestEven) {
  EXPECT_EQ(ToBFloat16(1.0F), 0x3f80);
  EXPECT_EQ(ToBFloat16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(ToBFloat16(1.0F + 0x3p-8F), 0x3f82);
  EXPECT_EQ(ToBFloat16(1.0F + 0x1.1p-8F), 0x3f81);
  EXPECT_EQ(ToBFloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(ToBFloat16(std::bit_cast<float>(0x7f800001U)), 0x7fc0);
  EXPECT_EQ(ToBFloat16(std::bit_cast<float>(0xffffffffU)), 0xffff);
}

// Bit patterns of floats: one in 509, plus those around each point where the
// rounding to a half or a bfloat16 changes.
std::vector<uint32_t> ManyFloats() {
  std::vector<uint32_t> floats;
  for (uint64_t bits = 0; bits <= ~uint32_t{0}; bits += 509) {
    floats.push_back(static_cast<uint32_t>(bits));
  }
  for (uint32_t high = 0; high < 1U << 19; ++high) {
    for (const uint32_t low : {0U, 1U, 0xfffU, 0x1000U, 0x1001U, 0x1fffU}) {
      floats.push_back(high << 13 | low);
    }
  }
  return floats;
}

using Narrow = void (*)(const std::byte* in, std::byte* out, size_t count);

// Compares `narrow`, which converts groups, with `one`, which converts one
// value.
template <typename One>
void ExpectNarrows(Narrow narrow, One one) {
  std::vector<uint32_t> in = ManyFloats();
  in.resize(in.size() / kNarrowGroup * kNarrowGroup);
  std::vector<uint16_t> out(in.size());
  narrow(reinterpret_cast<const std::byte*>(in.data()),
         reinterpret_cast<std::byte*>(out.data()), in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(out[i], one(std::bit_cast<float>(in[i]))) << std::hex << in[i];
  }
}

// Tests every implementation that this CPU can run, not only the one that
// CastFloats() chooses.
#if defined(__x86_64__)
TEST(FloatNarrowTest, Avx2EqualsOneByOne) {
  if (!HasAvx2AndF16c()) {
    GTEST_SKIP() << "this CPU has no AVX2 or no F16C";
  }
  ExpectNarrows(FloatsToFloat16Avx2, ToFloat16);
  ExpectNarrows(FloatsToBFloat16Avx2, ToBFloat16);
}

TEST(FloatNarrowTest, Avx512EqualsOneByOne) {
  if (!__builtin_cpu_supports("avx512f")) {
    GTEST_SKIP() << "this CPU has no AVX-512F";
  }
  ExpectNarrows(FloatsToFloat16Avx512, ToFloat16);
  ExpectNarrows(FloatsToBFloat16Avx512, ToBFloat16);
}
#endif

template <typename To, typename From>
std::vector<To> Cast(DType from, const std::vector<From>& in, DType to) {
  std::vector<To> out(in.size());
  CastFloats(from, reinterpret_cast<const std::byte*>(in.data()), to,
             reinterpret_cast<std::byte*>(out.data()), in.size());
  return out;
}

TEST(CastFloatsTest, WidensEveryHalfAndNarrowsItAgain) {
  std::vector<uint16_t> all(0x10000);
  std::iota(all.begin(), all.end(), uint16_t{0});
  constexpr DType kHalf = DType::kFloat16, kBHalf = DType::kBFloat16;
  const auto floats = Cast<uint32_t>(kHalf, all, DType::kFloat32);
  const auto bfloats = Cast<uint32_t>(kBHalf, all, DType::kFloat32);
  const auto to_bhalf = Cast<uint16_t>(kHalf, all, kBHalf);
  const auto to_half = Cast<uint16_t>(kBHalf, all, kHalf);
  for (size_t i = 0; i < all.size(); ++i) {
    const float value = FromFloat16(all[i]), bvalue = FromBFloat16(all[i]);
    ASSERT_EQ(floats[i], std::bit_cast<uint32_t>(value));
    ASSERT_EQ(bfloats[i], std::bit_cast<uint32_t>(bvalue));
    ASSERT_EQ(to_bhalf[i], ToBFloat16(value));
    ASSERT_EQ(to_half[i], ToFloat16(bvalue));
  }
}

TEST(CastFloatsTest, DoublesBecomeFloatsFirst) {
  // The second value is slightly above the midpoint between 1 and the next
  // half; as a float it would be exactly there.
  const std::vector<double> in = {0.5, 1 + 0x1p-11 + 0x1p-40, 1e300, -1e-300};
  EXPECT_EQ(Cast<uint16_t>(DType::kFloat64, in, DType::kFloat16),
            (std::vector<uint16_t>{0x3800, 0x3c00, 0x7c00, 0x8000}));
  EXPECT_EQ(Cast<float>(DType::kFloat64, in, DType::kFloat32),
            (std::vector<float>{0.5F, 1 + 0x1p-11F,
                                std::numeric_limits<float>::infinity(), 0}));
}

template <typename T>
void Append(T value, std::vector<std::byte>& bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof value);
}

// `value` must be exact in all formats.
void AppendAs(DType dtype, float value, std::vector<std::byte>& bytes) {
  switch (dtype) {
    case DType::kFloat64:
      return Append(double{value}, bytes);
    case DType::kFloat32:
      return Append(value, bytes);
    case DType::kFloat16:
      return Append(ToFloat16(value), bytes);
    default:
      return Append(ToBFloat16(value), bytes);
  }
}

// Tries counts around the number of values that are converted at a time, at any
// address.
TEST(CastFloatsTest, WritesWhatItConvertsAndNothingElse) {
  constexpr std::byte kUntouched{0xa5};
  for (const DType from :
       {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const DType to :
         {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      for (const size_t count :
           {0, 1, 15, 16, 17, 31, 33, 255, 256, 257, 300}) {
        for (const size_t offset : {0, 1, 2, 3}) {
          std::vector<std::byte> in(offset), want(offset, kUntouched);
          for (size_t i = 0; i < count; ++i) {
            const auto value = static_cast<float>(i % 256);
            AppendAs(from, value, in);
            AppendAs(to, value, want);
          }
          want.resize(want.size() + 8, kUntouched);
          std::vector<std::byte> out(want.size(), kUntouched);
          CastFloats(from, in.data() + offset, to, out.data() + offset, count);
          ASSERT_EQ(out, want)
              << DTypeName(from) << " to " << DTypeName(to) << ", " << count;
        }
      }
    }
  }
}

TEST(CastFloatsTest, KnowsFloats) {
  EXPECT_TRUE(IsFloat(DType::kFloat16));
  EXPECT_TRUE(IsFloat(DType::kBFloat16));
  EXPECT_TRUE(IsFloat(DType::kFloat32));
  EXPECT_TRUE(IsFloat(DType::kFloat64));
  EXPECT_FALSE(IsFloat(DType::kInt64));
  EXPECT_FALSE(IsFloat(DType::kNone));
}

}  // namespace
}  // namespace millrace
