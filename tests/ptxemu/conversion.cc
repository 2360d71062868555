// SPDX-License-Identifier: Apache-2.0
// The instruction cvt.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tests/ptxemu/operations.h"
#include "tests/ptxemu/values.h"

namespace millrace::ptxemu {
namespace {

double RoundToInteger(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    case Rounding::kNearest:
      return std::nearbyint(value);
    default:
      return std::trunc(value);
  }
}

// What becomes of NaN depends on both types.
uint64_t IntegerFromNan(const Instruction& in) {
  const bool is_zero = in.second_type.bytes < 8 && in.type.bytes < 8;
  return is_zero ? 0 : uint64_t{1} << (in.type.bits() - 1);
}

uint64_t IntegerFromFloat(const Instruction& in, double value) {
  if (std::isnan(value)) return IntegerFromNan(in);
  const int bits = in.type.bits();
  if (in.type.IsSigned()) {
    const double limit = std::ldexp(1, bits - 1);
    const uint64_t least = uint64_t{1} << (bits - 1);
    if (value <= -limit) return least;
    if (value >= limit) return least - 1;
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
  if (value <= 0) return 0;
  if (value >= std::ldexp(1, bits))
    return Truncate(~uint64_t{0}, in.type.bytes);
  return static_cast<uint64_t>(value);
}

uint64_t FromFloat(const Instruction& in, uint64_t bits) {
  double value = ToDouble(bits, in.second_type);
  if (!in.type.IsFloat()) {
    return IntegerFromFloat(in, RoundToInteger(value, in.rounding));
  }
  if (in.rounds_to_integer) value = RoundToInteger(value, in.rounding);
  if (in.saturates) value = std::isnan(value) ? 0 : std::clamp(value, 0.0, 1.0);
  return FromExact(value, in.type,
                   in.rounds_to_integer ? Rounding::kNearest : in.rounding);
}

// The integer in the range of the type that is nearest to `value`.
uint64_t Saturate(uint64_t value, bool is_signed, ValueType type) {
  const bool is_negative = is_signed && static_cast<int64_t>(value) < 0;
  if (!type.IsSigned()) {
    return is_negative ? 0
                       : std::min(value, Truncate(~uint64_t{0}, type.bytes));
  }
  const uint64_t most = (uint64_t{1} << (type.bits() - 1)) - 1;
  if (!is_negative) return std::min(value, most);
  return static_cast<uint64_t>(
      std::max(static_cast<int64_t>(value), -static_cast<int64_t>(most) - 1));
}

uint64_t FromInteger(const Instruction& in, uint64_t bits) {
  const bool is_signed = in.second_type.IsSigned();
  const int64_t extended = SignExtend(bits, in.second_type.bytes);
  if (in.type.IsFloat()) {
    const long double value = is_signed ? static_cast<long double>(extended)
                                        : static_cast<long double>(bits);
    return FromExact(value, in.type, in.rounding);
  }
  uint64_t value = is_signed ? static_cast<uint64_t>(extended) : bits;
  if (in.saturates) value = Saturate(value, is_signed, in.type);
  return in.type.IsSigned()
             ? static_cast<uint64_t>(SignExtend(value, in.type.bytes))
             : Truncate(value, in.type.bytes);
}

}  // namespace

uint64_t Convert(const Instruction& in, const Sources& s) {
  if (in.type.is_packed) {  // two floats, the first into the upper half
    const ValueType half = HalfOf(in.type);
    const uint64_t high =
        FromExact(ToDouble(s.a, in.second_type), half, in.rounding);
    const uint64_t low =
        FromExact(ToDouble(s.b, in.second_type), half, in.rounding);
    return high << 16 | low;
  }
  const uint64_t bits = Truncate(s.a, in.second_type.bytes);
  return in.second_type.IsFloat() ? FromFloat(in, bits) : FromInteger(in, bits);
}

}  // namespace millrace::ptxemu
