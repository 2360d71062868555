// SPDX-License-Identifier: Apache-2.0
// The ids that partitioning gives to nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/array.h"
#include "common/graph/partition_book.h"
#include "common/graph/schema.h"
#include "common/partition/assignment.h"

namespace millrace {

// A vector of ids with the dtype that they have in files (uint32 or uint64,
// depending on the node type).
class IdVector {
 public:
  explicit IdVector(const NodeType& type)
      : ids_(Array::Allocate(type.id_dtype(), {type.count})),
        wide_(type.id_dtype() == DType::kUint64),
        data_(ids_.mutable_data()) {}

  int64_t size() const { return ids_.rows(); }
  uint64_t operator[](uint64_t i) const {
    return wide_ ? reinterpret_cast<const uint64_t*>(data_)[i]
                 : reinterpret_cast<const uint32_t*>(data_)[i];
  }
  void Set(uint64_t i, uint64_t id) {
    if (wide_) {
      reinterpret_cast<uint64_t*>(data_)[i] = id;
    } else {
      reinterpret_cast<uint32_t*>(data_)[i] = static_cast<uint32_t>(id);
    }
  }
  // Elements [begin, end); valid as long as this object.
  Array Slice(uint64_t begin, uint64_t end) const;

 private:
  Array ids_;
  bool wide_;
  std::byte* data_;
};

// Immutable once made; one per node type.
struct Renumbering {
  PartitionBook book;
  IdVector original_of;  // original id, by id
  IdVector id_of;        // id, by original id
};

// Numbers nodes partition by partition, and within a partition by descending
// hotness, then by original id.
Renumbering Renumber(const NodeType& type,
                     const std::vector<PartitionId>& owners,
                     std::span<const float> hotness, int parts);

}  // namespace millrace
