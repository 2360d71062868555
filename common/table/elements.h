// SPDX-License-Identifier: Apache-2.0
// Array elements as other programs store them, read as int64, float or double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/base/dtype.h"
#include "common/base/float16.h"

namespace millrace {

// The element types of NumPy and PyTorch, which are more than the dtypes of
// stores.
enum class ElementType : uint8_t {
  kBool,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};

struct ElementFormat {
  ElementType type = ElementType::kUint8;
  bool big_endian = false;
};

// "bool", "int16", ...
std::string_view ElementName(ElementType type);
int64_t ElementBytes(ElementType type);
// False for kBool, though it can be read as 0 and 1.
bool IsInteger(ElementType type);
// The dtype of stores that has the same bits (kUint8 for kBool); kNone if there
// is none.
DType DTypeOf(ElementType type);
// The inverse of DTypeOf(), never kBool. `dtype` must not be kNone.
ElementType ElementTypeOf(DType dtype);

// Parses NumPy's descr, such as "<i2"; never returns bfloat16.
// INVALID_ARGUMENT: a dtype that is not supported (complex numbers, strings,
// objects, structures).
absl::StatusOr<ElementFormat> ElementFormatFromNpy(std::string_view descr);

// Types for elements that have no type of their own in C++20.
struct BoolByte {
  uint8_t byte;
};
struct Float16Bits {
  uint16_t bits;
};
struct BFloat16Bits {
  uint16_t bits;
};

// Calls `body` with a value of the C++ type of `type`.
template <typename Body>
void WithElementType(ElementType type, Body body) {
  switch (type) {
    case ElementType::kBool:
      return body(BoolByte{});
    case ElementType::kUint8:
      return body(uint8_t{});
    case ElementType::kInt8:
      return body(int8_t{});
    case ElementType::kUint16:
      return body(uint16_t{});
    case ElementType::kInt16:
      return body(int16_t{});
    case ElementType::kUint32:
      return body(uint32_t{});
    case ElementType::kInt32:
      return body(int32_t{});
    case ElementType::kUint64:
      return body(uint64_t{});
    case ElementType::kInt64:
      return body(int64_t{});
    case ElementType::kFloat16:
      return body(Float16Bits{});
    case ElementType::kBFloat16:
      return body(BFloat16Bits{});
    case ElementType::kFloat32:
      return body(float{});
    case ElementType::kFloat64:
      return body(double{});
  }
  MILLRACE_CHECK(false);
}

// `To` is float, double or int64_t. Converting floats to int64_t gives 0, so
// callers must refuse them with RequireIntegers().
template <typename To, typename From>
To ConvertElement(From value) {
  if constexpr (std::is_same_v<From, BoolByte>) {
    return static_cast<To>(value.byte != 0);
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    return 0;
  } else if constexpr (std::is_same_v<From, Float16Bits>) {
    return FromFloat16(value.bits);
  } else if constexpr (std::is_same_v<From, BFloat16Bits>) {
    return FromBFloat16(value.bits);
  } else {
    return static_cast<To>(value);
  }
}

// Converts `count` elements. They are `in_step` bytes apart and need no
// alignment; the results are `out_step` numbers apart.
template <typename To>
void ConvertElements(ElementFormat format, const char* in, int64_t in_step,
                     int64_t count, To* out, int64_t out_step = 1) {
  WithElementType(format.type, [&]<typename From>(From) {
    const auto convert = [&](auto load) {
      for (int64_t i = 0; i < count; ++i, in += in_step, out += out_step) {
        From value;
        load(value);
        *out = ConvertElement<To>(value);
      }
    };
    if (!format.big_endian) {
      return convert(
          [&](From& value) { std::memcpy(&value, in, sizeof(From)); });
    }
    convert([&](From& value) {
      std::reverse_copy(in, in + sizeof(From), reinterpret_cast<char*>(&value));
    });
  });
}

// INVALID_ARGUMENT "NAME: dtype float32, but integers are needed here" unless
// `type` is an integer or bool.
absl::Status RequireIntegers(const std::string& name, ElementType type);

// INVALID_ARGUMENT: `type` is uint64, and one of the numbers exceeds 2^63 - 1,
// so that it was read as a negative int64. `values` holds `rows` rows of
// `width` numbers, starting with row `first`.
absl::Status RefuseLargeIntegers(const std::string& name, ElementType type,
                                 int64_t first, const int64_t* values,
                                 int64_t rows, int64_t width);

}  // namespace millrace
