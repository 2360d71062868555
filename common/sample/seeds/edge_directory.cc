// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/edge_directory.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"
#include "common/sample/batch.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/list_range.h"

namespace millrace {
namespace {

// Lists up to this length are searched once for each pair of their node, longer
// ones once for all its pairs.
constexpr int64_t kShortList = 64;

class EdgeSearch {
 public:
  EdgeSearch(const Store& store, int part, const NodePairs& pairs,
             CancelPoller& poller)
      : store_(store),
        part_(part),
        relation_(pairs.relation),
        direction_(LookupDirection(store.schema().relations[pairs.relation])),
        lists_(store.partition(part)->edges[relation_].lists(direction_)),
        indptr_(lists_.indptr.As<int64_t>()),
        first_(store
                   .book(ListOwnerType(store.schema().relations[relation_],
                                       direction_))
                   .begin(part)),
        owners_(direction_ == Direction::kIn ? pairs.dst : pairs.src),
        neighbors_(direction_ == Direction::kIn ? pairs.src : pairs.dst),
        poller_(poller) {}

  absl::StatusOr<std::vector<uint8_t>> Run();

 private:
  // Where the list that a pair may be in is.
  absl::StatusOr<ListRange> ListOf(size_t pair) const;
  template <typename Id>
  absl::Status SearchAll();
  // Searches one long list for `pairs`, which are all of its node.
  template <typename Id>
  absl::Status SearchOnce(std::span<const uint32_t> pairs);

  const Store& store_;
  const int part_;
  const RelationIndex relation_;
  const Direction direction_;
  const NeighborLists& lists_;
  const std::span<const int64_t> indptr_;
  const uint64_t first_;
  const std::span<const uint64_t> owners_;
  const std::span<const uint64_t> neighbors_;
  CancelPoller& poller_;
  std::vector<uint8_t> found_;
  absl::flat_hash_map<uint64_t, bool> sought_;  // scratch: neighbour -> found
};

absl::StatusOr<ListRange> EdgeSearch::ListOf(size_t pair) const {
  const uint64_t row = owners_[pair] - first_;
  if (row >= indptr_.size() - 1) {  // indptr_ is never empty
    return absl::InvalidArgumentError(
        StrCat("id ", owners_[pair], " at position ", pair,
               " is not owned by partition ", part_));
  }
  const std::optional<ListRange> range =
      RangeOfList(indptr_, row, lists_.indices.rows());
  if (!range.has_value()) {
    return DamagedFile(store_,
                       ListPath(part_, store_.schema().RelationName(relation_),
                                direction_, "indptr"),
                       StrCat("is damaged at row ", row));
  }
  return *range;
}

template <typename Id>
absl::Status EdgeSearch::SearchOnce(std::span<const uint32_t> pairs) {
  MILLRACE_ASSIGN_OR_RETURN(const ListRange range, ListOf(pairs[0]));
  const auto list = lists_.indices.As<Id>().subspan(range.begin, range.degree);
  sought_.clear();
  sought_.reserve(pairs.size());
  for (const uint32_t pair : pairs) sought_[neighbors_[pair]] = false;
  MILLRACE_RETURN_IF_ERROR(
      poller_.InPieces(list.size(), [&](size_t begin, size_t end) {
        for (size_t at = begin; at < end; ++at) {
          const auto it = sought_.find(list[at]);
          if (it != sought_.end()) it->second = true;
        }
      }));
  for (const uint32_t pair : pairs) found_[pair] = sought_[neighbors_[pair]];
  return absl::OkStatus();
}

template <typename Id>
absl::Status EdgeSearch::SearchAll() {
  const std::span<const Id> indices = lists_.indices.As<Id>();
  std::vector<uint32_t> left;  // pairs whose lists are long
  for (size_t i = 0; i < owners_.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(const ListRange range, ListOf(i));
    if (range.degree > kShortList) {
      left.push_back(static_cast<uint32_t>(i));
      continue;
    }
    const auto list = indices.subspan(range.begin, range.degree);
    found_[i] = std::find(list.begin(), list.end(),
                          static_cast<Id>(neighbors_[i])) != list.end();
    MILLRACE_RETURN_IF_ERROR(poller_.Count(list.size() + 1));
  }
  std::sort(left.begin(), left.end(),
            [&](uint32_t a, uint32_t b) { return owners_[a] < owners_[b]; });
  const std::span<const uint32_t> sorted = left;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    while (end < sorted.size() &&
           owners_[sorted[end]] == owners_[sorted[begin]]) {
      ++end;
    }
    MILLRACE_RETURN_IF_ERROR(
        SearchOnce<Id>(sorted.subspan(begin, end - begin)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> EdgeSearch::Run() {
  if (!lists_.present()) {
    return absl::FailedPreconditionError(StrCat(
        "the store has no lists of ", store_.schema().RelationName(relation_)));
  }
  found_.resize(owners_.size());
  const bool narrow = lists_.indices.dtype() == DType::kUint32;
  MILLRACE_RETURN_IF_ERROR(narrow ? SearchAll<uint32_t>()
                                  : SearchAll<uint64_t>());
  return std::move(found_);
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> FindEdges(const Store& store, int part,
                                               const NodePairs& pairs,
                                               CancelPoller& poller) {
  return EdgeSearch(store, part, pairs, poller).Run();
}

}  // namespace millrace
