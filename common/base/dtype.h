// SPDX-License-Identifier: Apache-2.0
// Element types of arrays. The numbers are used on disk and on the wire
// (docs/format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace millrace {

enum class DType : uint8_t {
  kNone = 0,  // absent
  kUint8 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kUint32 = 4,
  kInt64 = 5,
  kUint64 = 6,
  kFloat16 = 7,
  kFloat32 = 8,
  kFloat64 = 9,
  kBFloat16 = 10,
};

// Bytes of one element; 0 for kNone.
size_t ItemBytes(DType dtype);

// "uint8", "bfloat16", ...; "none" for kNone.
std::string_view DTypeName(DType dtype);
// INVALID_ARGUMENT: `name` is not the name of a dtype.
absl::StatusOr<DType> DTypeFromName(std::string_view name);

// The dtype as NumPy's `descr` spells it, e.g. "<f4"; bfloat16 is "<u2".
std::string_view NpyDescr(DType dtype);
// The inverse of NpyDescr(), except that "<u2" is never taken as bfloat16.
// UNIMPLEMENTED: any other descr.
absl::StatusOr<DType> DTypeFromNpyDescr(std::string_view descr);

// The dtype of a C++ type; kNone if it has none.
template <typename T>
inline constexpr DType kDTypeOf = DType::kNone;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUint8;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kUint32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kUint64;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;

}  // namespace millrace
