// SPDX-License-Identifier: Apache-2.0
// Arrays of little-endian numbers in the byte fields of messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/base/strings.h"

namespace millrace {

// Appends ids to `out` in their type's id dtype (uint32 or uint64).
inline void AppendIds(std::span<const uint64_t> ids, DType dtype,
                      std::string& out) {
  const size_t item = ItemBytes(dtype);
  const size_t begin = out.size();
  out.resize(begin + ids.size() * item);
  char* at = out.data() + begin;
  if (dtype == DType::kUint64) {
    if (!ids.empty()) std::memcpy(at, ids.data(), ids.size_bytes());
    return;
  }
  for (const uint64_t id : ids) {
    const auto narrow = static_cast<uint32_t>(id);
    std::memcpy(at, &narrow, sizeof narrow);
    at += sizeof narrow;
  }
}

template <typename T>
void AppendRaw(std::span<const T> values, std::string& out) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// INVALID_ARGUMENT: the length is not a multiple of the size of T; the message
// names `field`.
template <typename T>
absl::StatusOr<std::vector<T>> ReadRaw(const std::string& bytes,
                                       std::string_view field) {
  if (bytes.size() % sizeof(T) != 0) {
    return absl::InvalidArgumentError(
        StrCat(field, " has ", bytes.size(),
               " bytes, which is not a multiple of ", sizeof(T)));
  }
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Reads ids in their type's id dtype and widens them. INVALID_ARGUMENT: an
// error of ReadRaw(), or an id that is not in [begin, end); the message names
// `field` and the position and value of the first such id.
inline absl::StatusOr<std::vector<uint64_t>> ReadIds(const std::string& bytes,
                                                     DType dtype,
                                                     uint64_t begin,
                                                     uint64_t end,
                                                     std::string_view field) {
  const size_t item = ItemBytes(dtype);
  if (bytes.size() % item != 0) {
    return absl::InvalidArgumentError(
        StrCat(field, " has ", bytes.size(),
               " bytes, which is not a multiple of ", item));
  }
  std::vector<uint64_t> ids(bytes.size() / item);
  for (size_t i = 0; i < ids.size(); ++i) {
    // The wire is little endian, as are all hosts that this runs on.
    std::memcpy(&ids[i], bytes.data() + i * item, item);
    if (ids[i] < begin || ids[i] >= end) {
      return absl::InvalidArgumentError(
          StrCat(field, "[", i, "] is ", ids[i],
                 ", which is not in the id range [", begin, ", ", end, ")"));
    }
  }
  return ids;
}

}  // namespace millrace
