// SPDX-License-Identifier: Apache-2.0
// The checks of VerifyStore(). They return DATA_LOSS with the file and index of
// the first violation. What needs partitions that are not mapped is left out.
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

// Checks original_id, hotness and lookup of one node type.
absl::Status VerifyNodes(const Store& store, TypeIndex type);
absl::Status VerifySplit(const Store& store, const SplitInfo& split);
// `index` is an index into manifest().edge_splits.
absl::Status VerifyEdgeSplit(const Store& store, size_t index);
// Checks the lists of one relation in both directions, and its edge features.
absl::Status VerifyRelation(const Store& store, RelationIndex relation);

// Makes the error DATA_LOSS "ROOT/FILE[INDEX]: WHAT".
absl::Status Violation(const Store& store, const std::string& file,
                       int64_t index, std::string_view what);

// Reads an id column without resolving the dtype at each access. `ids` must
// outlive it.
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
  // Null if the partition is not mapped.
  const NodeColumns* columns = nullptr;
};
NodeRow FindNode(const Store& store, TypeIndex type, uint64_t id);

// Checks that the node `id`, which must be in range, has the original id
// `original`, as far as the mapped partitions show: from the node's own row, or
// from the table of original ids. Returns what is wrong, or nothing.
std::string OriginalIdProblem(const Store& store, TypeIndex type, uint64_t id,
                              uint64_t original);

// A set of numbers: a bit for each possible number, or a hash set if few of
// them are expected.
class NumberSet {
 public:
  // Numbers from 0 to limit - 1, of which about `expected` will be inserted.
  NumberSet(uint64_t limit, uint64_t expected)
      : dense_(limit / 256 <= expected) {
    if (dense_) bits_.resize(limit);
  }
  // Returns false if the number was in the set already.
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
