// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/operations.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/ptxemu/float_operations.h"
#include "tests/ptxemu/values.h"

namespace millrace::ptxemu {
namespace {

using Wide = unsigned __int128;
using SignedWide = __int128;

// Adds or subtracts with the thread's carry flag, in the type's width.
uint64_t WithCarry(const Instruction& in, const Sources& s, uint64_t a,
                   uint64_t b, bool subtract) {
  const Wide x = Truncate(a, in.type.bytes);
  const Wide y = Truncate(b, in.type.bytes);
  const Wide carry = in.reads_carry && *s.carry ? 1 : 0;
  const Wide result = subtract ? x - y - carry : x + y + carry;
  if (in.writes_carry) *s.carry = (result >> in.type.bits() & 1) != 0;
  return static_cast<uint64_t>(result);
}

uint64_t ClampToInt32(int64_t value) {
  return static_cast<uint64_t>(
      std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

uint64_t Add(const Instruction& in, const Sources& s) {
  if (in.type.IsFloat()) return AddFloats(in, s);
  if (in.saturates)
    return ClampToInt32(SignExtend(s.a, 4) + SignExtend(s.b, 4));
  if (in.reads_carry || in.writes_carry)
    return WithCarry(in, s, s.a, s.b, false);
  return s.a + s.b;
}

uint64_t Subtract(const Instruction& in, const Sources& s) {
  if (in.type.IsFloat()) return SubtractFloats(in, s);
  if (in.saturates)
    return ClampToInt32(SignExtend(s.a, 4) - SignExtend(s.b, 4));
  if (in.reads_carry || in.writes_carry)
    return WithCarry(in, s, s.a, s.b, true);
  return s.a - s.b;
}

// The part of the product that the instruction asks for.
uint64_t Product(const Instruction& in, const Sources& s) {
  const int bytes = in.type.bytes;
  const int shift = in.is_high ? in.type.bits() : 0;
  if (in.type.IsSigned()) {
    const SignedWide product =
        SignedWide{SignExtend(s.a, bytes)} * SignExtend(s.b, bytes);
    return static_cast<uint64_t>(product >> shift);
  }
  const Wide product = Wide{Truncate(s.a, bytes)} * Truncate(s.b, bytes);
  return static_cast<uint64_t>(product >> shift);
}

uint64_t Multiply(const Instruction& in, const Sources& s) {
  return in.type.IsFloat() ? MultiplyFloats(in, s) : Product(in, s);
}

uint64_t MultiplyAdd(const Instruction& in, const Sources& s) {
  if (in.type.IsFloat()) return FusedMultiplyAdd(in, s);
  const uint64_t product = Product(in, s);
  if (in.saturates) {
    return ClampToInt32(SignExtend(product, 4) + SignExtend(s.c, 4));
  }
  if (!in.is_wide && (in.reads_carry || in.writes_carry)) {
    return WithCarry(in, s, product, s.c, false);
  }
  return product + s.c;
}

// What a division by zero gives is undefined; this is what devices do.
uint64_t Divide(const Instruction& in, const Sources& s) {
  if (in.type.IsFloat()) return DivideFloats(in, s);
  const int bytes = in.type.bytes;
  const uint64_t divisor = Truncate(s.b, bytes);
  if (divisor == 0) return ~uint64_t{0};
  if (!in.type.IsSigned()) return Truncate(s.a, bytes) / divisor;
  if (SignExtend(s.b, bytes) == -1) return 0 - s.a;
  return static_cast<uint64_t>(SignExtend(s.a, bytes) / SignExtend(s.b, bytes));
}

uint64_t Remainder(const Instruction& in, const Sources& s) {
  const int bytes = in.type.bytes;
  const uint64_t divisor = Truncate(s.b, bytes);
  if (divisor == 0) return s.a;
  if (!in.type.IsSigned()) return Truncate(s.a, bytes) % divisor;
  if (SignExtend(s.b, bytes) == -1) return 0;
  return static_cast<uint64_t>(SignExtend(s.a, bytes) % SignExtend(s.b, bytes));
}

uint64_t Absolute(const Instruction& in, const Sources& s) {
  if (in.type.IsFloat()) return AbsoluteFloat(in, s);
  return SignExtend(s.a, in.type.bytes) < 0 ? 0 - s.a : s.a;
}

uint64_t Negate(const Instruction& in, const Sources& s) {
  return in.type.IsFloat() ? NegateFloat(in, s) : 0 - s.a;
}

bool IsLess(const Instruction& in, uint64_t a, uint64_t b) {
  const int bytes = in.type.bytes;
  return in.type.IsSigned() ? SignExtend(a, bytes) < SignExtend(b, bytes)
                            : Truncate(a, bytes) < Truncate(b, bytes);
}

uint64_t Min(const Instruction& in, const Sources& s) {
  if (in.type.IsFloat()) return MinOfFloats(in, s);
  return IsLess(in, s.b, s.a) ? s.b : s.a;
}

uint64_t Max(const Instruction& in, const Sources& s) {
  if (in.type.IsFloat()) return MaxOfFloats(in, s);
  return IsLess(in, s.a, s.b) ? s.b : s.a;
}

uint64_t SumOfAbsoluteDifferences(const Instruction& in, const Sources& s) {
  return (IsLess(in, s.a, s.b) ? s.b - s.a : s.a - s.b) + s.c;
}

uint64_t CountOnes(const Instruction& in, const Sources& s) {
  return std::popcount(Truncate(s.a, in.type.bytes));
}

uint64_t CountLeadingZeros(const Instruction& in, const Sources& s) {
  return std::countl_zero(Truncate(s.a, in.type.bytes)) - (64 - in.type.bits());
}

uint64_t ReverseBits(const Instruction& in, const Sources& s) {
  uint64_t reversed = 0;
  for (int bit = 0; bit < in.type.bits(); ++bit) {
    if ((s.a >> bit & 1) != 0) {
      reversed |= uint64_t{1} << (in.type.bits() - 1 - bit);
    }
  }
  return reversed;
}

// The place of the highest bit that is not the sign.
uint64_t FindHighestBit(const Instruction& in, const Sources& s) {
  const int bytes = in.type.bytes;
  uint64_t value = Truncate(s.a, bytes);
  if (in.type.IsSigned() && SignExtend(value, bytes) < 0) {
    value = Truncate(~value, bytes);
  }
  if (value == 0) return 0xffffffff;
  const int place = 63 - std::countl_zero(value);
  return in.is_shift_amount ? in.type.bits() - 1 - place : place;
}

// `length` ones from bit 0 on.
uint64_t Ones(unsigned length) {
  return length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1;
}

uint64_t ExtractBitField(const Instruction& in, const Sources& s) {
  const uint64_t value = Truncate(s.a, in.type.bytes);
  const unsigned bits = in.type.bits();
  const unsigned position = s.b & 0xff;
  const unsigned length = s.c & 0xff;
  if (length == 0) return 0;
  const uint64_t field =
      position >= bits ? 0 : value >> position & Ones(length);
  const unsigned sign_place = std::min(position + length - 1, bits - 1);
  if (!in.type.IsSigned() || (value >> sign_place & 1) == 0) return field;
  const unsigned available = position >= bits ? 0 : bits - position;
  return field | ~Ones(std::min(length, available));
}

uint64_t InsertBitField(const Instruction& in, const Sources& s) {
  const unsigned position = s.c & 0xff;
  const unsigned length = s.d & 0xff;
  if (position >= static_cast<unsigned>(in.type.bits()) || length == 0) {
    return s.b;
  }
  const uint64_t mask = Ones(length) << position;
  return (s.b & ~mask) | (s.a << position & mask);
}

uint64_t MakeBitMask(const Instruction& in, const Sources& s) {
  auto position = static_cast<uint32_t>(s.a);
  auto length = static_cast<uint32_t>(s.b);
  if (!in.is_clamped) {
    position &= 31;
    length &= 31;
  }
  if (position >= 32) return 0;
  return Ones(std::min(length, 32u)) << position & 0xffffffff;
}

// Chooses four bytes out of eight.
uint64_t PermuteBytes(const Instruction&, const Sources& s) {
  const uint64_t bytes = (s.a & 0xffffffff) | s.b << 32;
  uint64_t result = 0;
  for (int place = 0; place < 4; ++place) {
    const unsigned selector = s.c >> 4 * place & 15;
    uint64_t byte = bytes >> 8 * (selector & 7) & 0xff;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * place;
  }
  return result;
}

uint64_t And(const Instruction&, const Sources& s) { return s.a & s.b; }
uint64_t Or(const Instruction&, const Sources& s) { return s.a | s.b; }
uint64_t Xor(const Instruction&, const Sources& s) { return s.a ^ s.b; }
uint64_t Not(const Instruction&, const Sources& s) { return ~s.a; }

uint64_t IsZero(const Instruction& in, const Sources& s) {
  return Truncate(s.a, in.type.bytes) == 0;
}

uint64_t ShiftLeft(const Instruction& in, const Sources& s) {
  const uint64_t count = Truncate(s.b, 4);
  return count >= static_cast<uint64_t>(in.type.bits()) ? 0 : s.a << count;
}

uint64_t ShiftRight(const Instruction& in, const Sources& s) {
  const uint64_t count = Truncate(s.b, 4);
  const uint64_t bits = in.type.bits();
  if (in.type.IsSigned()) {
    const int64_t value = SignExtend(s.a, in.type.bytes);
    return static_cast<uint64_t>(value >> std::min(count, bits - 1));
  }
  return count >= bits ? 0 : Truncate(s.a, in.type.bytes) >> count;
}

// Shifts two registers as one, and returns the upper or the lower.
uint64_t FunnelShift(const Instruction& in, const Sources& s) {
  const uint64_t both = (s.a & 0xffffffff) | s.b << 32;
  auto count = static_cast<uint32_t>(s.c);
  count = in.is_clamped ? std::min(count, 32u) : count & 31;
  return in.is_left ? both << count >> 32 : both >> count;
}

uint64_t Select(const Instruction&, const Sources& s) {
  return (s.c & 1) != 0 ? s.a : s.b;
}

uint64_t SelectBySign(const Instruction& in, const Sources& s) {
  const bool is_positive =
      in.type.IsFloat() ? ToDouble(s.c, in.type) >= 0 : SignExtend(s.c, 4) >= 0;
  return is_positive ? s.a : s.b;
}

constexpr Operation kOperations[] = {
    {"add", 2, Add},
    {"addc", 2, Add},
    {"sub", 2, Subtract},
    {"subc", 2, Subtract},
    {"mul", 2, Multiply},
    {"mad", 3, MultiplyAdd},
    {"madc", 3, MultiplyAdd},
    {"fma", 3, FusedMultiplyAdd},
    {"div", 2, Divide},
    {"rem", 2, Remainder},
    {"abs", 1, Absolute},
    {"neg", 1, Negate},
    {"min", 2, Min},
    {"max", 2, Max},
    {"sad", 3, SumOfAbsoluteDifferences},
    {"popc", 1, CountOnes},
    {"clz", 1, CountLeadingZeros},
    {"brev", 1, ReverseBits},
    {"bfind", 1, FindHighestBit},
    {"bfe", 3, ExtractBitField},
    {"bfi", 4, InsertBitField},
    {"bmsk", 2, MakeBitMask},
    {"prmt", 3, PermuteBytes},
    {"and", 2, And},
    {"or", 2, Or},
    {"xor", 2, Xor},
    {"not", 1, Not},
    {"cnot", 1, IsZero},
    {"shl", 2, ShiftLeft},
    {"shr", 2, ShiftRight},
    {"shf", 3, FunnelShift},
    {"selp", 3, Select},
    {"slct", 3, SelectBySign},
    {"copysign", 2, CopySign},
    {"sqrt", 1, SquareRoot},
    {"rsqrt", 1, ReciprocalSquareRoot},
    {"rcp", 1, Reciprocal},
    {"ex2", 1, PowerOfTwo},
    {"lg2", 1, LogarithmOfTwo},
    {"sin", 1, Sine},
    {"cos", 1, Cosine},
    {"tanh", 1, HyperbolicTangent},
};

bool CompareFloats(Comparison comparison, double a, double b) {
  const bool has_nan = std::isnan(a) || std::isnan(b);
  switch (comparison) {
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return !has_nan && a != b;
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    case Comparison::kGreaterEqual:
      return a >= b;
    case Comparison::kEqualOrNan:
      return has_nan || a == b;
    case Comparison::kNotEqualOrNan:
      return has_nan || a != b;
    case Comparison::kLessOrNan:
      return has_nan || a < b;
    case Comparison::kLessEqualOrNan:
      return has_nan || a <= b;
    case Comparison::kGreaterOrNan:
      return has_nan || a > b;
    case Comparison::kGreaterEqualOrNan:
      return has_nan || a >= b;
    case Comparison::kNumbers:
      return !has_nan;
    default:
      return has_nan;
  }
}

template <typename T>
bool CompareIntegers(Comparison comparison, T a, T b) {
  switch (comparison) {
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return a != b;
    case Comparison::kLess:
    case Comparison::kLower:
      return a < b;
    case Comparison::kLessEqual:
    case Comparison::kLowerSame:
      return a <= b;
    case Comparison::kGreater:
    case Comparison::kHigher:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace

const Operation* FindOperation(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kOperations), std::end(kOperations),
                   [&](const Operation& o) { return o.name == name; });
  return found == std::end(kOperations) ? nullptr : found;
}

bool Compare(const Instruction& in, const Sources& s) {
  const int bytes = in.type.bytes;
  if (in.type.IsFloat()) {
    return CompareFloats(in.comparison, ToDouble(s.a, in.type),
                         ToDouble(s.b, in.type));
  }
  const bool is_signed =
      in.type.IsSigned() && in.comparison < Comparison::kLower;
  if (is_signed) {
    return CompareIntegers(in.comparison, SignExtend(s.a, bytes),
                           SignExtend(s.b, bytes));
  }
  return CompareIntegers(in.comparison, Truncate(s.a, bytes),
                         Truncate(s.b, bytes));
}

uint64_t Set(const Instruction& in, const Sources& s) {
  if (!Compare(in, s)) return 0;
  return in.second_type.IsFloat() ? FromDouble(1, in.second_type)
                                  : ~uint64_t{0};
}

// Bit i of the table is the result where the sources' bits are those of i.
uint64_t LookUpBits(const Instruction& in, const Sources& s) {
  uint64_t result = 0;
  for (int row = 0; row < 8; ++row) {
    if ((in.table >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? s.a : ~s.a) & ((row & 2) != 0 ? s.b : ~s.b) &
              ((row & 1) != 0 ? s.c : ~s.c);
  }
  return result;
}

}  // namespace millrace::ptxemu
