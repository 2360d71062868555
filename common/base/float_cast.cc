// SPDX-License-Identifier: Apache-2.0
#include "common/base/float_cast.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/base/check.h"
#include "common/base/float16.h"
#include "common/base/float_narrow.h"

namespace millrace {
namespace {

// Converts a multiple of kNarrowGroup floats to 16 bits.
using Narrow = void (*)(const std::byte* in, std::byte* out, size_t count);

struct Unit {
  Narrow to_float16 = nullptr;
  Narrow to_bfloat16 = nullptr;
};

// The functions for the CPU's widest vector unit; null if it has none.
Unit WidestUnit() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return {FloatsToFloat16Avx512, FloatsToBFloat16Avx512};
  }
  if (HasAvx2AndF16c()) return {FloatsToFloat16Avx2, FloatsToBFloat16Avx2};
#endif
  return {};
}

template <typename T>
T Load(const std::byte* in, size_t i) {
  T value;
  std::memcpy(&value, in + i * sizeof(T), sizeof(T));
  return value;
}

template <typename From, typename Convert>
void Each(const std::byte* in, std::byte* out, size_t count, Convert convert) {
  for (size_t i = 0; i < count; ++i) {
    const auto value = convert(Load<From>(in, i));
    std::memcpy(out + i * sizeof(value), &value, sizeof(value));
  }
}

void NarrowFloats(const std::byte* in, DType to, std::byte* out, size_t count) {
  static const Unit unit = WidestUnit();
  const bool half = to == DType::kFloat16;
  if (const Narrow narrow = half ? unit.to_float16 : unit.to_bfloat16) {
    const size_t groups = count / kNarrowGroup * kNarrowGroup;
    narrow(in, out, groups);
    in += groups * sizeof(float);
    out += groups * sizeof(uint16_t);
    count -= groups;
  }
  if (half) {
    Each<float>(in, out, count, [](float v) { return ToFloat16(v); });
  } else {
    Each<float>(in, out, count, [](float v) { return ToBFloat16(v); });
  }
}

void WidenFloats(DType from, const std::byte* in, std::byte* out,
                 size_t count) {
  switch (from) {
    case DType::kFloat64:
      return Each<double>(in, out, count,
                          [](double v) { return static_cast<float>(v); });
    case DType::kFloat16:
      return Each<uint16_t>(in, out, count,
                            [](uint16_t v) { return FromFloat16(v); });
    case DType::kBFloat16:
      return Each<uint16_t>(in, out, count,
                            [](uint16_t v) { return FromBFloat16(v); });
    default:
      std::memcpy(out, in, count * sizeof(float));
  }
}

}  // namespace

#if defined(__x86_64__)
// Asks CPUID for F16C: Clang 14's __builtin_cpu_supports() does not know it.
bool HasAvx2AndF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx2") &&
         __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

void CastFloats(DType from, const std::byte* in, DType to, std::byte* out,
                size_t count) {
  MILLRACE_CHECK(IsFloat(from) && IsFloat(to) && to != DType::kFloat64);
  if (count == 0) return;  // memcpy() must not get a null pointer
  if (to == DType::kFloat32) return WidenFloats(from, in, out, count);
  if (from == DType::kFloat32) return NarrowFloats(in, to, out, count);
  constexpr size_t kPiece = 256;
  std::byte floats[kPiece * sizeof(float)];
  for (size_t at = 0; at < count; at += kPiece) {
    const size_t piece = std::min(kPiece, count - at);
    WidenFloats(from, in + at * ItemBytes(from), floats, piece);
    NarrowFloats(floats, to, out + at * sizeof(uint16_t), piece);
  }
}

}  // namespace millrace
