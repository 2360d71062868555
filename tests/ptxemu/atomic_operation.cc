// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/atomic_operation.h"

#include <algorithm>
#include <cmath>

#include "tests/ptxemu/float_operations.h"
#include "tests/ptxemu/values.h"

namespace millrace::ptxemu {
namespace {

// Turns a float that is too small for all its bits into zero of its sign.
uint64_t FlushSubnormal(uint64_t bits, ValueType type) {
  const auto value = static_cast<float>(ToDouble(bits, type));
  return std::fpclassify(value) == FP_SUBNORMAL ? bits & 0x80000000 : bits;
}

// Devices flush subnormal floats of 32 bits in global memory, but not in shared
// memory.
uint64_t AddAtomically(const Instruction& in, uint64_t old, uint64_t value,
                       bool is_shared) {
  if (!in.type.IsFloat()) return old + value;
  if (in.type.bytes != 4 || in.type.is_packed || is_shared) {
    return AddFloats(in, {old, value});
  }
  const Sources flushed{FlushSubnormal(old, in.type),
                        FlushSubnormal(value, in.type)};
  return FlushSubnormal(AddFloats(in, flushed), in.type);
}

bool IsLessAtomically(const Instruction& in, uint64_t a, uint64_t b) {
  return in.type.IsSigned()
             ? SignExtend(a, in.type.bytes) < SignExtend(b, in.type.bytes)
             : a < b;
}

}  // namespace

uint64_t UpdateAtomically(const Instruction& in, uint64_t old,
                          const Sources& sources, bool is_shared) {
  const uint64_t value = Truncate(sources.a, in.type.bytes);
  switch (in.atomic) {
    case AtomicOperation::kAdd:
      return AddAtomically(in, old, value, is_shared);
    case AtomicOperation::kMin:
      return IsLessAtomically(in, value, old) ? value : old;
    case AtomicOperation::kMax:
      return IsLessAtomically(in, old, value) ? value : old;
    case AtomicOperation::kExchange:
      return value;
    case AtomicOperation::kCompareAndSwap:
      return old == value ? sources.b : old;
    case AtomicOperation::kAnd:
      return old & value;
    case AtomicOperation::kOr:
      return old | value;
    case AtomicOperation::kXor:
      return old ^ value;
    case AtomicOperation::kIncrement:
      return old >= value ? 0 : old + 1;
    case AtomicOperation::kDecrement:
      return old == 0 || old > value ? value : old - 1;
  }
  return old;
}

}  // namespace millrace::ptxemu
