// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/block.h"
#include "common/graph/store.h"
#include "common/sample/feature_rows.h"
#include "common/sample/gather.h"

namespace millrace::testing {

// Reads the rows of a store by the CPU, and knows its blocks. Counts all rows
// as a device's. For one thread.
class FakeFeatureRows final : public FeatureRows {
 public:
  explicit FakeFeatureRows(std::shared_ptr<const Store> store)
      : store_(std::move(store)) {}

  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(uint64_t bytes) override {
    std::shared_ptr<std::byte> block = AllocateBlock(bytes);
    std::byte* data = block.get();
    (*blocks_)[data] = bytes;
    return std::shared_ptr<std::byte>(
        data, [block = std::move(block), blocks = blocks_](std::byte* freed) {
          blocks->erase(freed);
        });
  }
  absl::Status GatherNodes(TypeIndex type, std::span<const uint64_t> ids,
                           std::byte* out) override {
    if (!error_.ok()) return error_;
    if (!Owns(out)) return absl::InternalError("not a block");
    rows_ += ids.size();
    return GatherRows(*store_, type, NodeColumn::kFeature, ids, out);
  }
  absl::Status GatherEdges(RelationIndex relation,
                           std::span<const uint32_t> parts,
                           std::span<const uint64_t> rows,
                           std::byte* out) override {
    if (!error_.ok()) return error_;
    if (!Owns(out)) return absl::InternalError("not a block");
    rows_ += rows.size();
    return GatherEdgeRows(*store_, relation, parts, rows, out);
  }
  FeatureRowCounts counts() const override { return {.gpu = rows_}; }

  // Lets all calls that gather fail.
  void FailWith(absl::Status error) { error_ = std::move(error); }
  // Number of blocks that have not been freed.
  size_t block_count() const { return blocks_->size(); }
  // Whether `data` is in one of them.
  bool Owns(const std::byte* data) const {
    const auto next = blocks_->upper_bound(data);
    if (next == blocks_->begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return data < begin + bytes;
  }

 private:
  // Bytes by address.
  using Blocks = std::map<const std::byte*, uint64_t, std::less<>>;

  const std::shared_ptr<const Store> store_;  // shared with the test
  // Shared with the blocks, which may be freed later.
  const std::shared_ptr<Blocks> blocks_ = std::make_shared<Blocks>();
  absl::Status error_;
  uint64_t rows_ = 0;
};

}  // namespace millrace::testing
