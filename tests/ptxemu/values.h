// SPDX-License-Identifier: Apache-2.0
// Values as registers hold them: 64 bits, of which a type uses the lowest.
#pragma once

#include <cstdint>

#include "tests/ptxemu/instruction.h"

namespace millrace::ptxemu {

inline uint64_t Truncate(uint64_t value, int bytes) {
  return bytes >= 8 ? value : value & ((uint64_t{1} << 8 * bytes) - 1);
}

inline int64_t SignExtend(uint64_t value, int bytes) {
  const int unused = bytes >= 8 ? 0 : 64 - 8 * bytes;
  return static_cast<int64_t>(value << unused) >> unused;
}

// Between the bits of a float and its value. Each float is a double without
// loss.
double ToDouble(uint64_t bits, ValueType type);
// Rounds to the nearest.
uint64_t FromDouble(double value, ValueType type);
// Rounds as told. Integers of 64 bits are long doubles without loss.
uint64_t FromExact(long double value, ValueType type, Rounding rounding);

// The type of each half of a packed one.
inline ValueType HalfOf(ValueType type) {
  return {.kind = 'f', .bytes = 2, .is_bfloat = type.is_bfloat};
}

}  // namespace millrace::ptxemu
