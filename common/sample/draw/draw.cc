// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/draw.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/draw/list_view.h"
#include "common/sample/draw/pick_slots.h"
#include "common/sample/draw/slot_picker.h"
#include "common/sample/draw_rule.h"
#include "common/sample/list_range.h"

namespace millrace {
namespace {

constexpr uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }

// The number of a list's entries that are not later than `time`; lists are
// sorted by time.
int64_t Admissible(std::span<const int64_t> times, ListRange list,
                   int64_t time) {
  const auto begin = times.begin() + list.begin;
  return std::upper_bound(begin, begin + list.degree, time) - begin;
}

// Stage 1: finds the lists of the frontier, or their admissible parts. The
// loads for different nodes are independent, so their cache misses overlap.
absl::Status FindLists(const ListView& view, const Frontier& frontier,
                       std::vector<ListRange>& ranges) {
  const std::span<const int64_t> indptr = view.lists.indptr.As<int64_t>();
  const int64_t edge_count = view.lists.indices.rows();
  ranges.resize(frontier.ids.size());
  for (size_t i = 0; i < frontier.ids.size(); ++i) {
    const uint64_t row = frontier.ids[i] - view.first_id;
    if (row >= view.node_count) {
      return absl::InvalidArgumentError(
          StrCat("id ", frontier.ids[i], " at position ", i,
                 " is not owned by partition ", view.part, ", which owns ids ",
                 view.first_id, " up to but not including ",
                 view.first_id + view.node_count));
    }
    const std::optional<ListRange> range = RangeOfList(indptr, row, edge_count);
    if (!range.has_value()) {
      return view.Damaged(
          "indptr",
          StrCat("row ", row, " spans ", indptr[row], " to ", indptr[row + 1],
                 ", but there are ", edge_count, " edges"));
    }
    ranges[i] = *range;
  }
  if (frontier.times.empty() || !view.lists.time.present()) {
    return absl::OkStatus();
  }
  const std::span<const int64_t> times = view.lists.time.As<int64_t>();
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges[i].degree = Admissible(times, ranges[i], frontier.times[i]);
  }
  return absl::OkStatus();
}

// Stage 2: picks slots.
template <typename Id>
absl::Status PickSlots(const ListView& view, const Frontier& frontier,
                       std::span<const ListRange> ranges,
                       std::vector<int64_t>& slots,
                       std::vector<uint32_t>& counts) {
  constexpr size_t kAhead = 4;  // lists
  SlotPicker<Id> picker(view, frontier);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const size_t before = slots.size();
    if (i + kAhead < ranges.size()) picker.Prefetch(ranges[i + kAhead]);
    MILLRACE_RETURN_IF_ERROR(picker.Pick(i, ranges[i], slots));
    counts.push_back(static_cast<uint32_t>(slots.size() - before));
  }
  return absl::OkStatus();
}

// Stage 3: reads the neighbours at the slots.
template <typename Id>
absl::Status ReadNeighbors(const ListView& view, std::span<const int64_t> slots,
                           std::vector<uint64_t>& neighbors) {
  const std::span<const Id> indices = view.lists.indices.As<Id>();
  const uint64_t limit =
      view.store.book(NeighborType(view.relation, view.context.direction))
          .node_count();
  const size_t first = neighbors.size();
  neighbors.resize(first + slots.size());
  uint64_t largest = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const uint64_t neighbor = indices[slots[i]];
    largest = std::max(largest, neighbor);
    neighbors[first + i] = neighbor;
  }
  if (!slots.empty() && largest >= limit) {
    return view.Damaged("indices", StrCat("neighbour ", largest,
                                          ", but there are ", limit, " nodes"));
  }
  return absl::OkStatus();
}

// Frees scratch memory that a huge draw made large.
template <typename T>
void ReleaseLarge(std::vector<T>& scratch) {
  constexpr size_t kKeptBytes = size_t{16} << 20;
  if (scratch.capacity() * sizeof(T) > kKeptBytes) {
    std::vector<T>().swap(scratch);
  }
}

// Appends the rows of the picked edges' features, which the owner of their
// destinations holds in the order of its in-lists.
void ReadFeatureRows(const ListView& view, std::span<const int64_t> slots,
                     std::vector<uint64_t>& rows) {
  if (view.context.direction == Direction::kIn) {
    rows.insert(rows.end(), slots.begin(), slots.end());
    return;
  }
  const std::span<const int64_t> row_of = view.lists.slot.As<int64_t>();
  for (const int64_t slot : slots) {
    rows.push_back(static_cast<uint64_t>(row_of[slot]));
  }
}

// Runs all stages; `ranges` and `slots` are scratch.
absl::Status DrawFrom(const ListView& view, const Frontier& frontier,
                      std::vector<ListRange>& ranges,
                      std::vector<int64_t>& slots, Picks& picks) {
  MILLRACE_RETURN_IF_ERROR(FindLists(view, frontier, ranges));
  slots.clear();
  const bool narrow = view.lists.indices.dtype() == DType::kUint32;
  MILLRACE_RETURN_IF_ERROR(
      narrow
          ? PickSlots<uint32_t>(view, frontier, ranges, slots, picks.counts)
          : PickSlots<uint64_t>(view, frontier, ranges, slots, picks.counts));
  MILLRACE_RETURN_IF_ERROR(
      narrow ? ReadNeighbors<uint32_t>(view, slots, picks.neighbors)
             : ReadNeighbors<uint64_t>(view, slots, picks.neighbors));
  if (view.context.edge_ids) {
    const std::span<const int64_t> edge_ids = view.lists.edge_id.As<int64_t>();
    for (const int64_t slot : slots) picks.edge_ids.push_back(edge_ids[slot]);
  }
  if (view.context.feature_rows && view.relation.feature.present()) {
    ReadFeatureRows(view, slots, picks.feature_rows);
  }
  return absl::OkStatus();
}

// Checks that the lists have the columns that the rule reads. ResolveJob()
// checks this first, but not every request has passed it.
absl::Status CheckColumns(const ListView& view) {
  const DrawRuleInfo& rule = InfoOf(view.context.rule);
  const auto refused = [&](std::string_view why) {
    return absl::FailedPreconditionError(
        StrCat("the lists of ",
               view.store.schema().RelationName(view.relation_index), why));
  };
  if (rule.reads_weight_sums && !view.lists.weight_sum.present()) {
    return refused(" have no weights");
  }
  if (rule.reads_original_ids && !view.store.manifest().draws_by_neighbor()) {
    return refused(" do not hold the original ids of neighbours");
  }
  return absl::OkStatus();
}

}  // namespace

Permutation::Permutation(PhiloxKey key, uint64_t size)
    : key_(key), size_(size), half_bits_(4) {
  MILLRACE_CHECK(size >= 1);
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < size) {
    ++half_bits_;
  }
}

uint64_t Permutation::operator()(uint64_t position) const {
  constexpr int kRounds = 8;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t x = position;
  do {
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t f = Philox(key_, {Low(right), 0, round, 0})[0] & mask;
      const uint64_t next = left ^ f;
      left = right;
      right = next;
    }
    x = left << half_bits_ | right;
  } while (x >= size_);
  return x;
}

absl::Status DrawNeighbors(const Store& store, int part,
                           const DrawContext& context, const Frontier& frontier,
                           Picks& picks) {
  const Relation& relation = store.schema().relations[frontier.relation];
  const TypeIndex list_type = ListOwnerType(relation, context.direction);
  const Partition& partition = *store.partition(part);
  const SplitMembers* members = nullptr;
  if (!context.within.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(
        members, store.FindMembers(NeighborType(relation, context.direction),
                                   context.within));
  }
  const ListView view{
      store,
      part,
      context,
      relation,
      frontier.relation,
      partition.edges[frontier.relation].lists(context.direction),
      partition.nodes[list_type],
      store.book(list_type).begin(part),
      store.book(list_type).end(part) - store.book(list_type).begin(part),
      members};
  MILLRACE_RETURN_IF_ERROR(CheckColumns(view));
  // Kept per thread, so that most hops allocate nothing.
  thread_local std::vector<ListRange> ranges;
  thread_local std::vector<int64_t> slots;
  absl::Status status = DrawFrom(view, frontier, ranges, slots, picks);
  ReleaseLarge(ranges);
  ReleaseLarge(slots);
  return status;
}

}  // namespace millrace
