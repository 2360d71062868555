// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/feature_rows.h"
#include "common/sample/gather_columns.h"
#include "tests/support/known_memory.h"

namespace millrace::testing {

// Reads the rows of a store by the CPU, and knows its blocks. Counts all rows
// as a device's. For one thread.
class FakeFeatureRows final : public FeatureRows {
 public:
  explicit FakeFeatureRows(std::shared_ptr<const Store> store)
      : store_(std::move(store)) {}

  absl::StatusOr<Array> GatherNodes(TypeIndex type,
                                    std::span<const uint64_t> ids,
                                    ArrayMemory* memory) override {
    memory_ = memory;
    if (!error_.ok()) return error_;
    rows_ += ids.size();
    return GatherArray(*store_, type, NodeColumn::kFeature, ids,
                       {.memory = &blocks_});
  }
  absl::StatusOr<Array> GatherEdges(RelationIndex relation,
                                    std::span<const uint32_t> parts,
                                    std::span<const uint64_t> rows,
                                    ArrayMemory* memory) override {
    memory_ = memory;
    if (!error_.ok()) return error_;
    rows_ += rows.size();
    return GatherEdgeArray(*store_, relation, parts, rows,
                           {.memory = &blocks_});
  }
  FeatureRowCounts counts() const override { return {.gpu = rows_}; }

  // Lets all calls that gather fail.
  void FailWith(absl::Status error) { error_ = std::move(error); }
  // Number of blocks that have not been freed.
  size_t block_count() const { return blocks_.block_count(); }
  // Whether `data` is in one of them.
  bool Owns(const std::byte* data) const { return blocks_.Owns(data); }
  // What the last call was given.
  const ArrayMemory* memory() const { return memory_; }

 private:
  const std::shared_ptr<const Store> store_;  // shared with the test
  KnownMemory blocks_{kHost};
  const ArrayMemory* memory_ = nullptr;
  absl::Status error_;
  uint64_t rows_ = 0;
};

}  // namespace millrace::testing
