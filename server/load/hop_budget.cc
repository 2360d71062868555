// SPDX-License-Identifier: Apache-2.0
#include "server/load/hop_budget.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/status_macros.h"
#include "common/sample/batch.h"
#include "common/sample/list_lengths.h"
#include "server/load/memory_model.h"
#include "server/load/request_limits.h"

namespace millrace {
namespace {

uint64_t BytesPerPick(const DrawContext& draw) {
  return kBytesPerPick + (draw.edge_ids ? kBytesPerEdgeId : 0) +
         (draw.feature_rows ? kBytesPerFeatureRow : 0);
}

// Returns the total length of the lists that are mapped here.
uint64_t LocalEntries(const Store& store, const DrawContext& draw,
                      const Frontier& frontier) {
  const Relation& relation = store.schema().relations[frontier.relation];
  const PartitionBook& book =
      store.book(ListOwnerType(relation, draw.direction));
  std::vector<std::optional<ListLengths>> lengths(store.partition_count());
  for (int part = 0; part < store.partition_count(); ++part) {
    if (store.partition(part) == nullptr) continue;
    lengths[part].emplace(store, part, frontier.relation, draw.direction);
  }
  uint64_t sum = 0;
  for (const uint64_t id : frontier.ids) {
    const std::optional<ListLengths>& owner = lengths[book.Owner(id)];
    if (owner.has_value()) sum += static_cast<uint64_t>(owner->Of(id));
  }
  return sum;
}

}  // namespace

HopBudget::Expected HopBudget::Expect(const DrawContext& draw,
                                      const Frontier& frontier) {
  const Relation& relation = store_.schema().relations[frontier.relation];
  const auto edges = static_cast<uint64_t>(relation.edge_count);
  // Each node occurs once in a frontier, so no edge is picked twice.
  const bool edges_once = !draw.replace && frontier.trees.empty();
  Expected expected;
  if (frontier.fanout >= 0) {
    expected.room =
        frontier.ids.size() * static_cast<uint64_t>(frontier.fanout);
    if (edges_once) expected.room = std::min(expected.room, edges);
    bytes_ += expected.room * bytes_per_pick_;
    return expected;
  }
  // The lengths of lists on other servers become known with their answers.
  bytes_ += LocalEntries(store_, draw, frontier) * bytes_per_pick_;
  const DType ids = store_.schema()
                        .node_types[NeighborType(relation, draw.direction)]
                        .id_dtype();
  const uint64_t edge_bytes =
      ItemBytes(ids) + (draw.edge_ids ? 8 : 0) + (draw.feature_rows ? 8 : 0);
  expected.reply_bytes = kMaxExpandReplyBytes;
  if (frontier.trees.empty()) {
    expected.reply_bytes =
        std::min<uint64_t>(expected.reply_bytes, edges * edge_bytes);
  }
  return expected;
}

absl::Status HopBudget::StartHop(const DrawContext& draw,
                                 std::span<const Frontier> frontiers) {
  bytes_per_pick_ = BytesPerPick(draw);
  reply_bytes_ = 0;
  expected_.clear();
  for (const Frontier& frontier : frontiers) {
    bytes_ += frontier.ids.size() * kBytesPerFrontierNode;
    expected_.push_back(Expect(draw, frontier));
  }
  return Grow();
}

absl::Status HopBudget::ExpectReply(const std::vector<bool>& asked) {
  uint64_t bytes = 0;
  for (size_t f = 0; f < expected_.size(); ++f) {
    if (asked[f]) bytes += expected_[f].reply_bytes;
  }
  reply_bytes_ += std::min<uint64_t>(bytes, kMaxExpandReplyBytes);
  return Grow();
}

void HopBudget::ReleasePicks(const DrawContext& draw, uint64_t picks) {
  bytes_ -= std::min(bytes_, picks * BytesPerPick(draw));
}

absl::Status HopBudget::AddPicks(size_t frontier, uint64_t picks) {
  uint64_t& room = expected_[frontier].room;
  const uint64_t foreseen = std::min(room, picks);
  room -= foreseen;
  bytes_ += (picks - foreseen) * bytes_per_pick_;
  return Grow();
}

}  // namespace millrace
