// SPDX-License-Identifier: Apache-2.0
// Ids as the bytes of a request or reply, in their type's id dtype.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/dtype.h"

namespace millrace {

inline std::string IdBytes(std::span<const uint64_t> ids, DType id_dtype) {
  std::string bytes(ids.size() * ItemBytes(id_dtype), '\0');
  if (id_dtype == DType::kUint64) {
    std::memcpy(bytes.data(), ids.data(), bytes.size());
    return bytes;
  }
  const std::vector<uint32_t> narrow(ids.begin(), ids.end());
  std::memcpy(bytes.data(), narrow.data(), bytes.size());
  return bytes;
}

// Empty when the length is no multiple of the id's size.
inline std::vector<uint64_t> IdsFromBytes(std::string_view bytes,
                                          DType id_dtype) {
  const size_t item = ItemBytes(id_dtype);
  if (bytes.size() % item != 0) return {};
  std::vector<uint64_t> ids(bytes.size() / item);
  for (size_t i = 0; i < ids.size(); ++i) {
    uint64_t id = 0;
    std::memcpy(&id, bytes.data() + i * item, item);
    ids[i] = id;
  }
  return ids;
}

}  // namespace millrace
