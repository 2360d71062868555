// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/values.h"

#include <bit>
#include <cmath>

namespace millrace::ptxemu {
namespace {

// Rounds to a float so that a second rounding, to fewer bits, cannot go wrong:
// an inexact result is truncated and its last bit is set.
uint32_t FloatRoundedToOdd(long double value) {
  auto rounded = static_cast<float>(value);
  if (static_cast<long double>(rounded) == value || std::isnan(value)) {
    return std::bit_cast<uint32_t>(rounded);
  }
  if (std::fabs(static_cast<long double>(rounded)) > std::fabs(value)) {
    rounded = std::nextafter(rounded, 0.0f);
  }
  return std::bit_cast<uint32_t>(rounded) | 1;
}

uint64_t ToBfloat(long double value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t bits = FloatRoundedToOdd(value);
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

uint64_t NearestFrom(long double value, ValueType type) {
  switch (type.bytes) {
    case 8:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    case 4:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    default:
      if (type.is_bfloat) return ToBfloat(value);
      return std::bit_cast<uint16_t>(static_cast<_Float16>(
          std::bit_cast<float>(FloatRoundedToOdd(value))));
  }
}

}  // namespace

double ToDouble(uint64_t bits, ValueType type) {
  switch (type.bytes) {
    case 8:
      return std::bit_cast<double>(bits);
    case 4:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    default:
      if (type.is_bfloat) {
        return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
      }
      return static_cast<float>(
          std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  }
}

uint64_t FromDouble(double value, ValueType type) {
  return NearestFrom(value, type);
}

uint64_t FromExact(long double value, ValueType type, Rounding rounding) {
  const uint64_t nearest = NearestFrom(value, type);
  const long double error = ToDouble(nearest, type) - value;
  const bool is_negative = std::signbit(value);
  const bool towards_zero =
      rounding == Rounding::kZero ||
      rounding == (is_negative ? Rounding::kUp : Rounding::kDown);
  const bool is_directed = rounding == Rounding::kZero ||
                           rounding == Rounding::kUp ||
                           rounding == Rounding::kDown;
  if (!is_directed || error == 0 || std::isnan(error)) return nearest;
  // Neighbouring floats of a sign have neighbouring bits.
  const bool is_too_far = is_negative ? error < 0 : error > 0;
  if (towards_zero) return is_too_far ? nearest - 1 : nearest;
  return is_too_far ? nearest : nearest + 1;
}

}  // namespace millrace::ptxemu
