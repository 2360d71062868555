// SPDX-License-Identifier: Apache-2.0
// Entries of neighbour lists, packed into as few bytes as their columns need.
// Edges are held in this form while they are sorted by node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace {

// The columns that entries have.
struct EdgeLayout {
  bool wide = false;  // node ids may be 2^32 or more
  bool has_weight = false;
  bool has_time = false;
  bool has_type = false;
  bool has_slot = false;
  int64_t feature_width = 0;  // in float32 values; 0 if none

  size_t feature_offset() const {
    return 8 + (wide ? 16 : 8) + (has_weight ? 4 : 0) + (has_time ? 8 : 0) +
           (has_type ? 4 : 0) + (has_slot ? 8 : 0);
  }
  size_t record_bytes() const {
    return feature_offset() + static_cast<size_t>(feature_width) * 4;
  }
};

// An entry without its features.
struct EdgeRecord {
  int64_t node = 0;      // the node whose list this is an entry of
  int64_t neighbor = 0;  // the node at the other end
  int64_t edge_id = 0;
  float weight = 1;
  int64_t time = 0;
  int32_t type = 0;
  int64_t slot = 0;
};

namespace edge_record_internal {

template <typename T>
void Put(std::byte*& out, T value) {
  std::memcpy(out, &value, sizeof(T));
  out += sizeof(T);
}

template <typename T>
T Take(const std::byte*& in) {
  T value;
  std::memcpy(&value, in, sizeof(T));
  in += sizeof(T);
  return value;
}

}  // namespace edge_record_internal

// Writes record_bytes() bytes to `out`. `features` points to feature_width
// floats, which come last; null stands for zeros.
inline void PackEdge(const EdgeLayout& layout, const EdgeRecord& record,
                     const float* features, std::byte* out) {
  using edge_record_internal::Put;
  if (layout.wide) {
    Put(out, record.node);
    Put(out, record.neighbor);
  } else {
    Put(out, static_cast<uint32_t>(record.node));
    Put(out, static_cast<uint32_t>(record.neighbor));
  }
  Put(out, record.edge_id);
  if (layout.has_time) Put(out, record.time);
  if (layout.has_slot) Put(out, record.slot);
  if (layout.has_weight) Put(out, record.weight);
  if (layout.has_type) Put(out, record.type);
  const size_t feature_bytes = static_cast<size_t>(layout.feature_width) * 4;
  if (feature_bytes == 0) return;
  if (features != nullptr) {
    std::memcpy(out, features, feature_bytes);
  } else {
    std::memset(out, 0, feature_bytes);
  }
}

inline int64_t PackedNode(const EdgeLayout& layout, const std::byte* in) {
  using edge_record_internal::Take;
  return layout.wide ? Take<int64_t>(in) : int64_t{Take<uint32_t>(in)};
}

inline EdgeRecord UnpackEdge(const EdgeLayout& layout, const std::byte* in) {
  using edge_record_internal::Take;
  EdgeRecord record;
  if (layout.wide) {
    record.node = Take<int64_t>(in);
    record.neighbor = Take<int64_t>(in);
  } else {
    record.node = Take<uint32_t>(in);
    record.neighbor = Take<uint32_t>(in);
  }
  record.edge_id = Take<int64_t>(in);
  if (layout.has_time) record.time = Take<int64_t>(in);
  if (layout.has_slot) record.slot = Take<int64_t>(in);
  if (layout.has_weight) record.weight = Take<float>(in);
  if (layout.has_type) record.type = Take<int32_t>(in);
  return record;
}

}  // namespace millrace
