// SPDX-License-Identifier: Apache-2.0
#include "common/wire/cast.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"

namespace millrace {
namespace {

uint16_t ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float FromBFloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

uint16_t ToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;   // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds beyond 65504
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 leaves the rounded value in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t rebiased = magnitude - 0x38000000;
  return static_cast<uint16_t>(
      sign | ((rebiased + 0xfff + (rebiased >> 13 & 1)) >> 13));
}

float FromFloat16(uint16_t half) {
  const uint32_t sign = uint32_t{half} << 16 & 0x80000000;
  const uint32_t exponent = half >> 10 & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  const uint32_t wide = exponent == 31 ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <typename T>
float Load(const std::byte* in, size_t i) {
  T value;
  std::memcpy(&value, in + i * sizeof(T), sizeof(T));
  return static_cast<float>(value);
}

float LoadHalf(const std::byte* in, size_t i, float (*widen)(uint16_t)) {
  uint16_t bits;
  std::memcpy(&bits, in + i * sizeof bits, sizeof bits);
  return widen(bits);
}

template <typename LoadFn>
void Narrow(LoadFn load, DType to, std::byte* out, size_t count) {
  const auto store = [&](auto narrow) {
    for (size_t i = 0; i < count; ++i) {
      const uint16_t bits = narrow(load(i));
      std::memcpy(out + i * sizeof bits, &bits, sizeof bits);
    }
  };
  if (to == DType::kFloat16) {
    store(ToFloat16);
  } else {
    store(ToBFloat16);
  }
}

}  // namespace

bool CanCast(DType from, DType to) {
  const bool narrow = to == DType::kFloat16 || to == DType::kBFloat16;
  const bool floating = from == DType::kFloat16 || from == DType::kBFloat16 ||
                        from == DType::kFloat32 || from == DType::kFloat64;
  return from == to || (narrow && floating);
}

void CastElements(DType from, const std::byte* in, DType to, std::byte* out,
                  size_t count) {
  MILLRACE_CHECK(CanCast(from, to));
  if (from == to) {
    std::memcpy(out, in, count * ItemBytes(from));
  } else if (from == DType::kFloat32) {
    Narrow([in](size_t i) { return Load<float>(in, i); }, to, out, count);
  } else if (from == DType::kFloat64) {
    Narrow([in](size_t i) { return Load<double>(in, i); }, to, out, count);
  } else {
    const auto widen = from == DType::kFloat16 ? FromFloat16 : FromBFloat16;
    Narrow([in, widen](size_t i) { return LoadHalf(in, i, widen); }, to, out,
           count);
  }
}

}  // namespace millrace
