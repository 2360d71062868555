// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the bits of float16 and bfloat16. They round to
// the nearest value, ties to even; overflow gives infinity, NaN a quiet NaN.
// They use integer arithmetic and one multiplication that is exact, so every
// machine gives the same bits.
#pragma once

#include <bit>
#include <cstdint>

namespace millrace {

inline uint16_t ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>(bits >> 16 | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float FromBFloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

inline uint16_t ToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520 and above
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: units of 2^-24
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) {  // below 2^-25
      half = 0;
    } else {
      const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
      const uint32_t shift = 126 - exponent;
      const uint32_t rest = mantissa & ((1u << shift) - 1);
      const uint32_t tie = 1u << (shift - 1);
      half = mantissa >> shift;
      if (rest > tie || (rest == tie && (half & 1u) != 0)) ++half;
    }
  } else {
    half = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

inline float FromFloat16(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // mantissa * 2^-24, exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide = exponent == 31 ? 0x7f800000u : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | mantissa << 13);
}

}  // namespace millrace
