// SPDX-License-Identifier: Apache-2.0
#include "common/table/elements.h"

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

struct TypeInfo {
  ElementType type;
  std::string_view name;
  std::string_view npy;  // descr without the byte order
  int64_t bytes;
  DType dtype;  // the dtype in stores
};

constexpr std::array kInfos = {
    TypeInfo{ElementType::kBool, "bool", "b1", 1, DType::kUint8},
    TypeInfo{ElementType::kUint8, "uint8", "u1", 1, DType::kUint8},
    TypeInfo{ElementType::kInt8, "int8", "i1", 1, DType::kInt8},
    TypeInfo{ElementType::kUint16, "uint16", "u2", 2, DType::kNone},
    TypeInfo{ElementType::kInt16, "int16", "i2", 2, DType::kNone},
    TypeInfo{ElementType::kUint32, "uint32", "u4", 4, DType::kUint32},
    TypeInfo{ElementType::kInt32, "int32", "i4", 4, DType::kInt32},
    TypeInfo{ElementType::kUint64, "uint64", "u8", 8, DType::kUint64},
    TypeInfo{ElementType::kInt64, "int64", "i8", 8, DType::kInt64},
    TypeInfo{ElementType::kFloat16, "float16", "f2", 2, DType::kFloat16},
    TypeInfo{ElementType::kBFloat16, "bfloat16", "", 2, DType::kBFloat16},
    TypeInfo{ElementType::kFloat32, "float32", "f4", 4, DType::kFloat32},
    TypeInfo{ElementType::kFloat64, "float64", "f8", 8, DType::kFloat64},
};

const TypeInfo& InfoOf(ElementType type) {
  const TypeInfo& info = kInfos[static_cast<size_t>(type)];
  MILLRACE_CHECK(info.type == type);
  return info;
}

}  // namespace

std::string_view ElementName(ElementType type) { return InfoOf(type).name; }

int64_t ElementBytes(ElementType type) { return InfoOf(type).bytes; }

bool IsInteger(ElementType type) {
  return type >= ElementType::kUint8 && type <= ElementType::kInt64;
}

DType DTypeOf(ElementType type) { return InfoOf(type).dtype; }

ElementType ElementTypeOf(DType dtype) {
  const auto found =
      std::find_if(kInfos.begin(), kInfos.end(), [dtype](const TypeInfo& info) {
        return info.dtype == dtype && info.type != ElementType::kBool;
      });
  MILLRACE_CHECK(dtype != DType::kNone && found != kInfos.end());
  return found->type;
}

absl::StatusOr<ElementFormat> ElementFormatFromNpy(std::string_view descr) {
  const bool ordered =
      descr.size() > 1 &&
      std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  for (const TypeInfo& info : kInfos) {
    if (!ordered || info.npy.empty() || descr.substr(1) != info.npy) continue;
    return ElementFormat{info.type, descr[0] == '>' && info.bytes > 1};
  }
  return absl::InvalidArgumentError(StrCat(
      "numpy dtype '", absl::CHexEscape(std::string(descr)),
      "' is not supported; convert the array to bool, to an integer type or "
      "to float16, float32 or float64"));
}

absl::Status RequireIntegers(const std::string& name, ElementType type) {
  if (IsInteger(type) || type == ElementType::kBool) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(name, ": dtype ", ElementName(type),
                                           ", but integers are needed here"));
}

absl::Status RefuseLargeIntegers(const std::string& name, ElementType type,
                                 int64_t first, const int64_t* values,
                                 int64_t rows, int64_t width) {
  if (type != ElementType::kUint64) return absl::OkStatus();
  for (int64_t i = 0; i < rows * width; ++i) {
    if (values[i] >= 0) continue;
    return absl::InvalidArgumentError(
        StrCat(name, ": row ", first + i / width, ": ",
               static_cast<uint64_t>(values[i]),
               " is above the largest integer, 2^63 - 1"));
  }
  return absl::OkStatus();
}

}  // namespace millrace
