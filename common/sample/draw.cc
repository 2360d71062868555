// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"

namespace millrace {
namespace {

constexpr uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t High(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}

// The words of one frontier node in one domain, four at a time.
class WordStream {
 public:
  WordStream(const DrawDomain& domain, PhiloxKey key, uint64_t node,
             uint32_t tree)
      : domain_(domain), key_(key), node_(node), tree_(tree) {}

  // bounded(i, n) of the specification, 1 <= n.
  uint64_t Bounded(uint32_t i, uint64_t n) {
    return n <= std::numeric_limits<uint32_t>::max()
               ? Bounded32(i, static_cast<uint32_t>(n))
               : Bounded64(i, n);
  }

 private:
  uint32_t Word(uint32_t i) {
    if (const uint32_t block = i / 4; block != block_) {
      words_ = Philox(key_, {Low(node_), High(node_), tree_, block});
      block_ = block;
    }
    return words_[i % 4];
  }
  uint32_t RetryWord(uint32_t i, uint32_t retry) const {
    return Philox(domain_.Key(retry),
                  {Low(node_), High(node_), tree_, i / 4})[i % 4];
  }

  uint32_t Bounded32(uint32_t i, uint32_t n) {
    uint64_t product = uint64_t{Word(i)} * n;
    if (Low(product) < n) [[unlikely]] {
      const uint32_t threshold = (0u - n) % n;
      for (uint32_t retry = 1; Low(product) < threshold; ++retry) {
        product = uint64_t{RetryWord(i, retry)} * n;
      }
    }
    return High(product);
  }

  uint64_t Bounded64(uint32_t i, uint64_t n) {
    using Wide = unsigned __int128;
    const uint64_t threshold = (0u - n) % n;
    uint64_t word = Word(2 * i) | uint64_t{Word(2 * i + 1)} << 32;
    Wide product = Wide{word} * n;
    for (uint32_t retry = 1; static_cast<uint64_t>(product) < threshold;
         ++retry) {
      word = RetryWord(2 * i, retry) | uint64_t{RetryWord(2 * i + 1, retry)}
                                           << 32;
      product = Wide{word} * n;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  const DrawDomain& domain_;
  const PhiloxKey key_;
  const uint64_t node_;
  const uint32_t tree_;
  uint32_t block_ = std::numeric_limits<uint32_t>::max();
  PhiloxWords words_{};
};

// Where a node's list lies in its partition's arrays.
struct ListRange {
  int64_t begin = 0;
  int64_t degree = 0;
};

// Floyd's algorithm with the picks kept sorted: `j` exceeds all earlier
// picks, so a repeated draw appends it. Quadratic, for small k.
void DrawFewDistinct(WordStream& words, ListRange list, int32_t k,
                     std::vector<int64_t>& slots) {
  const size_t first = slots.size();
  for (int32_t i = 0; i < k; ++i) {
    const int64_t j = list.degree - k + i;
    const int64_t pick = static_cast<int64_t>(words.Bounded(i, j + 1));
    size_t at = slots.size();
    while (at > first && slots[at - 1] > list.begin + pick) --at;
    const bool repeated = at > first && slots[at - 1] == list.begin + pick;
    if (repeated) {
      slots.push_back(list.begin + j);
    } else {
      slots.insert(slots.begin() + static_cast<ptrdiff_t>(at),
                   list.begin + pick);
    }
  }
}

// The same for large k.
void DrawManyDistinct(WordStream& words, ListRange list, int32_t k,
                      std::vector<int64_t>& slots) {
  const size_t first = slots.size();
  absl::flat_hash_set<int64_t> picked;
  picked.reserve(k);
  for (int32_t i = 0; i < k; ++i) {
    const int64_t j = list.degree - k + i;
    const int64_t pick = static_cast<int64_t>(words.Bounded(i, j + 1));
    const int64_t slot = picked.insert(pick).second ? pick : j;
    picked.insert(slot);
    slots.push_back(list.begin + slot);
  }
  std::sort(slots.begin() + static_cast<ptrdiff_t>(first), slots.end());
}

// Appends the picked positions of one list (section 3).
void DrawSlots(const DrawContext& context, WordStream& words, ListRange list,
               int32_t fanout, std::vector<int64_t>& slots) {
  constexpr int32_t kFew = 48;
  if (fanout == kAllNeighbors || (!context.replace && fanout >= list.degree)) {
    for (int64_t i = 0; i < list.degree; ++i) slots.push_back(list.begin + i);
  } else if (list.degree == 0) {
    return;
  } else if (context.replace) {
    for (int32_t i = 0; i < fanout; ++i) {
      slots.push_back(list.begin +
                      static_cast<int64_t>(words.Bounded(i, list.degree)));
    }
  } else if (fanout <= kFew) {
    DrawFewDistinct(words, list, fanout, slots);
  } else {
    DrawManyDistinct(words, list, fanout, slots);
  }
}

// One relation's lists in one partition, as the stages below read them.
struct ListView {
  const Store& store;
  int part;
  const DrawContext& context;
  const Relation& relation;
  RelationIndex relation_index;
  const NeighborLists& lists;
  const NodeColumns& nodes;  // of the list's type
  uint64_t first_id;
  uint64_t node_count;

  absl::Status Damaged(std::string_view column, std::string_view what) const {
    return absl::DataLossError(StrCat(
        (store.path() / ListPath(part,
                                 store.schema().RelationName(relation_index),
                                 context.direction, column))
            .string(),
        " is damaged: ", what, "\nrun `millrace verify` on the store"));
  }
};

// Stage 1: where the lists of the frontier lie. The loads of a block of nodes
// are independent, so their cache misses overlap.
absl::Status FindLists(const ListView& view, std::span<const uint64_t> ids,
                       std::vector<ListRange>& ranges) {
  const std::span<const int64_t> indptr = view.lists.indptr.As<int64_t>();
  const int64_t edge_count = view.lists.indices.rows();
  ranges.resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t row = ids[i] - view.first_id;
    if (row >= view.node_count) {
      return absl::InvalidArgumentError(
          StrCat("id ", ids[i], " at position ", i,
                 " is not owned by partition ", view.part, ", which owns ",
                 view.first_id, " to ", view.first_id + view.node_count));
    }
    const int64_t begin = indptr[row];
    const int64_t end = indptr[row + 1];
    if (begin < 0 || end < begin || end > edge_count) {
      return view.Damaged(
          "indptr", StrCat("row ", row, " spans ", begin, " to ", end, " of ",
                           edge_count, " edges"));
    }
    ranges[i] = {begin, end - begin};
  }
  return absl::OkStatus();
}

// Stage 2: which slots are picked.
template <typename Id>
void DrawAll(const ListView& view, const Frontier& frontier,
             std::span<const ListRange> ranges, std::vector<int64_t>& slots,
             std::vector<uint32_t>& counts) {
  const DrawDomain domain{.job_seed = view.context.job_seed,
                          .epoch = view.context.epoch,
                          .batch = view.context.batch,
                          .purpose = Purpose::kNeighbor,
                          .hop = view.context.hop,
                          .relation = frontier.relation};
  const PhiloxKey key = domain.Key();
  const std::span<const Id> original_ids = view.nodes.original_id.As<Id>();
  for (size_t i = 0; i < ranges.size(); ++i) {
    const size_t before = slots.size();
    const uint64_t node = original_ids[frontier.ids[i] - view.first_id];
    const uint32_t tree = frontier.trees.empty() ? 0 : frontier.trees[i];
    WordStream words(domain, key, node, tree);
    DrawSlots(view.context, words, ranges[i], frontier.fanout, slots);
    counts.push_back(static_cast<uint32_t>(slots.size() - before));
  }
}

// Stage 3: the neighbours at the slots.
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
    return view.Damaged("indices",
                        StrCat("neighbour ", largest, " of ", limit));
  }
  return absl::OkStatus();
}

// Gives back what a huge draw made large, not to keep it for ever.
template <typename T>
void ReleaseLarge(std::vector<T>& scratch) {
  constexpr size_t kKeptBytes = size_t{16} << 20;
  if (scratch.capacity() * sizeof(T) > kKeptBytes) {
    std::vector<T>().swap(scratch);
  }
}

// All stages; `ranges` and `slots` are scratch.
absl::Status DrawFrom(const ListView& view, const Frontier& frontier,
                      std::vector<ListRange>& ranges,
                      std::vector<int64_t>& slots, Picks& picks) {
  MILLRACE_RETURN_IF_ERROR(FindLists(view, frontier.ids, ranges));
  slots.clear();
  if (view.nodes.original_id.dtype() == DType::kUint32) {
    DrawAll<uint32_t>(view, frontier, ranges, slots, picks.counts);
  } else {
    DrawAll<uint64_t>(view, frontier, ranges, slots, picks.counts);
  }
  const bool narrow = view.lists.indices.dtype() == DType::kUint32;
  MILLRACE_RETURN_IF_ERROR(
      narrow ? ReadNeighbors<uint32_t>(view, slots, picks.neighbors)
             : ReadNeighbors<uint64_t>(view, slots, picks.neighbors));
  if (view.context.edge_ids) {
    const std::span<const int64_t> edge_ids = view.lists.edge_id.As<int64_t>();
    for (const int64_t slot : slots) picks.edge_ids.push_back(edge_ids[slot]);
  }
  return absl::OkStatus();
}

}  // namespace

PhiloxKey DrawDomain::Key(uint32_t retry) const {
  const PhiloxWords words = Philox(
      {Low(job_seed), High(job_seed)},
      {epoch, batch, static_cast<uint32_t>(purpose) + 256 * retry,
       static_cast<uint32_t>(hop) * 65536 + static_cast<uint32_t>(relation)});
  return {words[0], words[1]};
}

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
  const TypeIndex list_type = ListType(relation, context.direction);
  const Partition& partition = *store.partition(part);
  const ListView view{
      store,
      part,
      context,
      relation,
      frontier.relation,
      partition.edges[frontier.relation].lists(context.direction),
      partition.nodes[list_type],
      store.book(list_type).begin(part),
      store.book(list_type).end(part) - store.book(list_type).begin(part)};
  // Kept per thread: a hop allocates nothing once warm.
  thread_local std::vector<ListRange> ranges;
  thread_local std::vector<int64_t> slots;
  const absl::Status status = DrawFrom(view, frontier, ranges, slots, picks);
  ReleaseLarge(ranges);
  ReleaseLarge(slots);
  return status;
}

}  // namespace millrace
