// SPDX-License-Identifier: Apache-2.0
#include "common/base/dtype.h"

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::string_view descr;
  size_t bytes;
};

constexpr std::array<DTypeInfo, 11> kInfos = {{
    {DType::kNone, "none", "", 0},
    {DType::kUint8, "uint8", "|u1", 1},
    {DType::kInt8, "int8", "|i1", 1},
    {DType::kInt32, "int32", "<i4", 4},
    {DType::kUint32, "uint32", "<u4", 4},
    {DType::kInt64, "int64", "<i8", 8},
    {DType::kUint64, "uint64", "<u8", 8},
    {DType::kFloat16, "float16", "<f2", 2},
    {DType::kFloat32, "float32", "<f4", 4},
    {DType::kFloat64, "float64", "<f8", 8},
    {DType::kBFloat16, "bfloat16", "<u2", 2},
}};

// Numbers read from a file or the wire that are not a dtype count as kNone.
const DTypeInfo& InfoOf(DType dtype) {
  const auto number = static_cast<size_t>(dtype);
  return kInfos[number < kInfos.size() ? number : 0];
}

}  // namespace

size_t ItemBytes(DType dtype) { return InfoOf(dtype).bytes; }

std::string_view DTypeName(DType dtype) { return InfoOf(dtype).name; }

std::string_view NpyDescr(DType dtype) { return InfoOf(dtype).descr; }

absl::StatusOr<DType> DTypeFromName(std::string_view name) {
  for (const DTypeInfo& info : kInfos) {
    if (info.name == name) return info.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CHexEscape(std::string(name)),
      "' is not a dtype; there are uint8, int8, int32, uint32, int64, ",
      "uint64, float16, float32, float64 and bfloat16"));
}

absl::StatusOr<DType> DTypeFromNpyDescr(std::string_view descr) {
  for (const DTypeInfo& info : kInfos) {
    if (info.dtype == DType::kNone || info.dtype == DType::kBFloat16) continue;
    if (info.descr == descr) return info.dtype;
  }
  return absl::UnimplementedError(
      absl::StrCat("numpy dtype '", absl::CHexEscape(std::string(descr)),
                   "' is not supported; convert to ",
                   "(u)int8, (u)int32, (u)int64, float16, float32 or float64",
                   descr.starts_with('>') ? ", little endian" : ""));
}

}  // namespace millrace
