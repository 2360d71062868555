// SPDX-License-Identifier: Apache-2.0
// Reading arrays of any dtype as int64 or float.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "common/base/check.h"
#include "common/base/dtype.h"
#include "common/base/float16.h"

namespace millrace {

// The C++ types of 16-bit floats: bits that ConvertElement() understands.
struct Float16Bits {
  uint16_t bits;
};
struct BFloat16Bits {
  uint16_t bits;
};

bool IsIntegerDType(DType dtype);

// Calls `body` with a value of the C++ type of `dtype`, which is not kNone.
template <typename Body>
void WithElementType(DType dtype, Body body) {
  switch (dtype) {
    case DType::kUint8:
      return body(uint8_t{});
    case DType::kInt8:
      return body(int8_t{});
    case DType::kInt32:
      return body(int32_t{});
    case DType::kUint32:
      return body(uint32_t{});
    case DType::kInt64:
      return body(int64_t{});
    case DType::kUint64:
      return body(uint64_t{});
    case DType::kFloat16:
      return body(Float16Bits{});
    case DType::kBFloat16:
      return body(BFloat16Bits{});
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
    case DType::kNone:
      break;
  }
  MILLRACE_CHECK(false);
}

// `To` is float, or int64_t for integers (0 for floats, which
// RequireIntegers() refuses).
template <typename To, typename From>
To ConvertElement(From value) {
  if constexpr (std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_integral_v<To>) {
    return 0;
  } else if constexpr (std::is_same_v<From, Float16Bits>) {
    return FromFloat16(value.bits);
  } else if constexpr (std::is_same_v<From, BFloat16Bits>) {
    return FromBFloat16(value.bits);
  } else {
    return static_cast<To>(value);
  }
}

// Converts `count` elements that lie `in_step` bytes apart, at any address,
// to places `out_step` numbers apart.
template <typename To>
void ConvertElements(DType dtype, const char* in, int64_t in_step,
                     int64_t count, To* out, int64_t out_step = 1) {
  WithElementType(dtype, [&]<typename From>(From) {
    for (int64_t i = 0; i < count; ++i, in += in_step, out += out_step) {
      From value;
      std::memcpy(&value, in, sizeof(From));
      *out = ConvertElement<To>(value);
    }
  });
}

// INVALID_ARGUMENT "NAME: dtype float32, but integers are needed here".
absl::Status RequireIntegers(const std::string& name, DType dtype);

// uint64 numbers above 2^63 - 1, which were read as negative int64.
// `values`: rows from row `first` on, of `width` numbers.
absl::Status RefuseLargeIntegers(const std::string& name, DType dtype,
                                 int64_t first, const int64_t* values,
                                 int64_t rows, int64_t width);

}  // namespace millrace
