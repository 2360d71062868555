// SPDX-License-Identifier: Apache-2.0
// The checks that VerifyStore() consists of; all partitions must be mapped.
// Each returns DATA_LOSS with the file and index of the first violation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/base/array.h"
#include "common/graph/store.h"

namespace millrace {

// original_id, hotness and lookup of one node type.
absl::Status VerifyNodes(const Store& store, TypeIndex type);
// One split.
absl::Status VerifySplit(const Store& store, const SplitInfo& split);
// One edge split; `index` is that of the manifest.
absl::Status VerifyEdgeSplit(const Store& store, size_t index);
// The lists of one relation in both directions, and its edge features.
absl::Status VerifyRelation(const Store& store, RelationIndex relation);

// "ROOT/FILE[INDEX]: WHAT".
absl::Status Violation(const Store& store, const std::string& file,
                       int64_t index, std::string_view what);

// Reads an id column, with the dtype resolved once instead of at each access.
class IdReader {
 public:
  explicit IdReader(const Array& ids)
      : narrow_(ids.dtype() == DType::kUint32
                    ? reinterpret_cast<const uint32_t*>(ids.data())
                    : nullptr),
        wide_(reinterpret_cast<const uint64_t*>(ids.data())),
        size_(ids.rows()) {}
  int64_t size() const { return size_; }
  uint64_t operator[](int64_t i) const {
    return narrow_ != nullptr ? narrow_[i] : wide_[i];
  }

 private:
  const uint32_t* narrow_;
  const uint64_t* wide_;
  int64_t size_;
};

// The partition that a node is in, and its row there.
struct NodeRow {
  int part = 0;
  int64_t row = 0;
};
NodeRow FindNode(const Store& store, TypeIndex type, uint64_t id);

// A set of numbers: a bit for each possible number, or a hash set if only few
// of many are used.
class NumberSet {
 public:
  // Numbers from 0 to limit - 1, of which about `expected` will be inserted.
  NumberSet(uint64_t limit, uint64_t expected)
      : dense_(limit / 256 <= expected) {
    if (dense_) bits_.resize(limit);
  }
  // False if the number was in the set already.
  bool Insert(uint64_t number) {
    if (!dense_) return sparse_.insert(number).second;
    const bool fresh = !bits_[number];
    bits_[number] = true;
    return fresh;
  }

 private:
  const bool dense_;
  std::vector<bool> bits_;
  absl::flat_hash_set<uint64_t> sparse_;
};

}  // namespace millrace
