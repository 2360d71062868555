// SPDX-License-Identifier: Apache-2.0
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/verify_content.h"
#include "common/graph/weights.h"

namespace millrace {
namespace {

// Number of edges between two checks of the interrupt flag.
constexpr int64_t kStride = int64_t{1} << 20;

class ListsVerifier {
 public:
  ListsVerifier(const Store& store, RelationIndex index, Direction direction)
      : store_(store),
        index_(index),
        relation_(store.schema().relations[index]),
        direction_(direction),
        owner_(direction == Direction::kIn ? relation_.dst : relation_.src),
        neighbor_(direction == Direction::kIn ? relation_.src : relation_.dst) {
  }

  absl::Status Verify() const {
    NumberSet seen(static_cast<uint64_t>(relation_.max_edge_id) + 1,
                   static_cast<uint64_t>(relation_.edge_count));
    int64_t edges = 0;
    int64_t largest = -1;
    for (const int part : store_.mapped_partitions()) {
      MILLRACE_RETURN_IF_ERROR(VerifyIndptr(part));
      MILLRACE_RETURN_IF_ERROR(VerifyIndices(part));
      MILLRACE_RETURN_IF_ERROR(VerifyEdgeIds(part, seen, largest));
      MILLRACE_RETURN_IF_ERROR(VerifyOrder(part));
      MILLRACE_RETURN_IF_ERROR(VerifyNeighborTimes(part));
      MILLRACE_RETURN_IF_ERROR(VerifyNeighborOriginalIds(part));
      MILLRACE_RETURN_IF_ERROR(VerifyWeights(part));
      MILLRACE_RETURN_IF_ERROR(VerifySlots(part));
      edges += Lists(part).indices.rows();
    }
    if (!store_.is_whole()) return absl::OkStatus();
    if (edges != relation_.edge_count || largest != relation_.max_edge_id) {
      return absl::DataLossError(StrCat(
          store_.path().native(), ": the ", DirectionName(direction_),
          "-lists of ", store_.schema().RelationName(index_), " have ", edges,
          " edges up to edge id ", largest, ", but store.json says ",
          relation_.edge_count, " up to ", relation_.max_edge_id));
    }
    return absl::OkStatus();
  }

  // A digest of the edges with ids in [begin, end) whose ends are both in
  // mapped partitions. It is a sum, so it does not depend on their order:
  // in-lists and out-lists of the same edges give the same digest.
  uint64_t Digest(int64_t begin, int64_t end) const {
    uint64_t sum = 0;
    for (const int part : store_.mapped_partitions()) {
      const NeighborLists& lists = Lists(part);
      const auto indptr = lists.indptr.As<int64_t>();
      const auto edge_id = lists.edge_id.As<int64_t>();
      const IdReader indices(lists.indices);
      const uint64_t first = store_.book(owner_).begin(part);
      for (size_t row = 0; row + 1 < indptr.size(); ++row) {
        for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
          const int64_t edge = edge_id[static_cast<size_t>(i)];
          if (edge < begin || edge >= end || !IsHere(indices[i])) continue;
          sum += EdgeHash(lists, i, first + row, indices[i]);
        }
      }
    }
    return sum;
  }

 private:
  // Whether a neighbour's partition is mapped.
  bool IsHere(uint64_t id) const {
    return store_.is_whole() ||
           FindNode(store_, neighbor_, id).columns != nullptr;
  }

  const NeighborLists& Lists(int part) const {
    return store_.partition(part)->edges[index_].lists(direction_);
  }

  std::string File(int part, std::string_view column) const {
    return ListPath(part, store_.schema().RelationName(index_), direction_,
                    column);
  }

  uint64_t EdgeHash(const NeighborLists& lists, int64_t i, uint64_t self,
                    uint64_t peer) const {
    const auto at = static_cast<size_t>(i);
    const bool in = direction_ == Direction::kIn;
    std::array<uint64_t, 6> words = {
        static_cast<uint64_t>(lists.edge_id.As<int64_t>()[at]),
        in ? peer : self, in ? self : peer};
    if (relation_.has_weight) {
      std::memcpy(&words[3], &lists.weight.As<float>()[at], sizeof(float));
    }
    if (relation_.has_type) {
      words[4] = static_cast<uint64_t>(lists.type.As<int32_t>()[at]);
    }
    // Times of neighbours are left out, since they depend on the direction.
    if (relation_.time == ListTime::kEdge) {
      words[5] = static_cast<uint64_t>(lists.time.As<int64_t>()[at]);
    }
    return XXH3_64bits(words.data(), sizeof words);
  }

  absl::Status VerifyIndptr(int part) const {
    const std::span<const int64_t> indptr = Lists(part).indptr.As<int64_t>();
    for (size_t i = 1; i < indptr.size(); ++i) {
      if (indptr[i] >= indptr[i - 1]) continue;
      return Violation(store_, File(part, "indptr"), static_cast<int64_t>(i),
                       StrCat(indptr[i], " follows ", indptr[i - 1],
                              "; values must not decrease"));
    }
    return absl::OkStatus();
  }

  absl::Status VerifyIndices(int part) const {
    const IdReader indices(Lists(part).indices);
    const auto count =
        static_cast<uint64_t>(store_.schema().node_types[neighbor_].count);
    for (int64_t i = 0; i < indices.size(); ++i) {
      if (i % kStride == 0) MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      if (indices[i] < count) continue;
      return Violation(
          store_, File(part, "indices"), i,
          StrCat(indices[i], " is out of range: there are ", count, " nodes"));
    }
    return absl::OkStatus();
  }

  absl::Status VerifyEdgeIds(int part, NumberSet& seen,
                             int64_t& largest) const {
    const auto ids = Lists(part).edge_id.As<int64_t>();
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (at % kStride == 0) MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      if (ids[i] < 0 || ids[i] > relation_.max_edge_id) {
        return Violation(store_, File(part, "edge_id"), at,
                         StrCat(ids[i], " is not in the range 0 to ",
                                relation_.max_edge_id));
      }
      if (!seen.Insert(static_cast<uint64_t>(ids[i]))) {
        return Violation(store_, File(part, "edge_id"), at,
                         StrCat(ids[i], " occurs twice"));
      }
      largest = std::max(largest, ids[i]);
    }
    return absl::OkStatus();
  }

  // Checks that each list is in ascending order of (time, edge id).
  absl::Status VerifyOrder(int part) const {
    const NeighborLists& lists = Lists(part);
    const auto indptr = lists.indptr.As<int64_t>();
    const auto edge_id = lists.edge_id.As<int64_t>();
    const auto time = lists.time.As<int64_t>();
    for (size_t row = 0; row + 1 < indptr.size(); ++row) {
      const auto end = static_cast<size_t>(indptr[row + 1]);
      for (size_t i = static_cast<size_t>(indptr[row]) + 1; i < end; ++i) {
        const bool later = !time.empty() && time[i] > time[i - 1];
        const bool equal = time.empty() || time[i] == time[i - 1];
        if (later || (equal && edge_id[i] > edge_id[i - 1])) continue;
        return Violation(store_, File(part, time.empty() ? "edge_id" : "time"),
                         static_cast<int64_t>(i),
                         StrCat("out of order in the list of row ", row));
      }
    }
    return absl::OkStatus();
  }

  absl::Status VerifyNeighborTimes(int part) const {
    const NeighborLists& lists = Lists(part);
    if (relation_.time != ListTime::kNeighbor || !lists.time.present()) {
      return absl::OkStatus();
    }
    const auto time = lists.time.As<int64_t>();
    const IdReader indices(lists.indices);
    for (int64_t i = 0; i < indices.size(); ++i) {
      const NodeRow node = FindNode(store_, neighbor_, indices[i]);
      if (node.columns == nullptr) continue;
      const int64_t expected =
          node.columns->time.As<int64_t>()[static_cast<size_t>(node.row)];
      if (time[static_cast<size_t>(i)] == expected) continue;
      return Violation(store_, File(part, "time"), i,
                       StrCat(time[static_cast<size_t>(i)],
                              ", but the neighbour's time is ", expected));
    }
    return absl::OkStatus();
  }

  absl::Status VerifyNeighborOriginalIds(int part) const {
    const NeighborLists& lists = Lists(part);
    if (!lists.neighbor_original_id.present()) return absl::OkStatus();
    const IdReader indices(lists.indices);
    const IdReader originals(lists.neighbor_original_id);
    for (int64_t i = 0; i < indices.size(); ++i) {
      const std::string problem =
          OriginalIdProblem(store_, neighbor_, indices[i], originals[i]);
      if (problem.empty()) continue;
      return Violation(store_, File(part, "neighbor_original_id"), i,
                       StrCat("the neighbour's ", problem));
    }
    return absl::OkStatus();
  }

  absl::Status VerifyWeights(int part) const {
    const NeighborLists& lists = Lists(part);
    if (!lists.weight.present()) return absl::OkStatus();
    const auto indptr = lists.indptr.As<int64_t>();
    const auto weights = lists.weight.As<float>();
    const auto stored = lists.weight_sum.As<uint64_t>();
    for (size_t i = 0; i < weights.size(); ++i) {
      if (std::isfinite(weights[i]) && weights[i] >= 0) continue;
      return Violation(store_, File(part, "weight"), static_cast<int64_t>(i),
                       StrCat(weights[i], " is not a finite number >= 0"));
    }
    for (size_t row = 0; row + 1 < indptr.size(); ++row) {
      const auto begin = static_cast<size_t>(indptr[row]);
      const auto degree = static_cast<size_t>(indptr[row + 1]) - begin;
      const std::vector<uint64_t> sums =
          WeightSums(weights.subspan(begin, degree));
      for (size_t i = 0; i < degree; ++i) {
        if (stored[begin + i] == sums[i]) continue;
        return Violation(
            store_, File(part, "weight_sum"), static_cast<int64_t>(begin + i),
            StrCat(stored[begin + i], ", but the weights give ", sums[i]));
      }
    }
    return absl::OkStatus();
  }

  // Checks that the slot of each out-edge names the row of that edge.
  absl::Status VerifySlots(int part) const {
    const NeighborLists& lists = Lists(part);
    if (!lists.slot.present()) return absl::OkStatus();
    const auto slots = lists.slot.As<int64_t>();
    const auto edge_id = lists.edge_id.As<int64_t>();
    const IdReader indices(lists.indices);
    for (int64_t i = 0; i < indices.size(); ++i) {
      const auto at = static_cast<size_t>(i);
      if (slots[at] < 0) {
        return Violation(store_, File(part, "slot"), i,
                         StrCat(slots[at], " is negative"));
      }
      const int owner = FindNode(store_, relation_.dst, indices[i]).part;
      if (store_.partition(owner) == nullptr) continue;
      const EdgeColumns& edges = store_.partition(owner)->edges[index_];
      if (slots[at] >= edges.feature.rows()) {
        return Violation(store_, File(part, "slot"), i,
                         StrCat(slots[at], " is out of range: partition ",
                                owner, " has ", edges.feature.rows(), " rows"));
      }
      if (!edges.in.present()) continue;
      const int64_t held =
          edges.in.edge_id.As<int64_t>()[static_cast<size_t>(slots[at])];
      if (held == edge_id[at]) continue;
      return Violation(store_, File(part, "slot"), i,
                       StrCat(slots[at], " is the row of edge ", held,
                              ", not of edge ", edge_id[at]));
    }
    return absl::OkStatus();
  }

  const Store& store_;
  const RelationIndex index_;
  const Relation& relation_;
  const Direction direction_;
  const TypeIndex owner_;
  const TypeIndex neighbor_;
};

absl::Status VerifySameEdges(const Store& store, RelationIndex index,
                             const ListsVerifier& in,
                             const ListsVerifier& out) {
  int64_t begin = 0;
  int64_t end = store.schema().relations[index].max_edge_id + 1;
  if (in.Digest(begin, end) == out.Digest(begin, end)) {
    return absl::OkStatus();
  }
  // Bisect to find one edge to name in the message.
  while (end - begin > 1) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    const int64_t middle = begin + (end - begin) / 2;
    const bool left = in.Digest(begin, middle) != out.Digest(begin, middle);
    (left ? end : begin) = middle;
  }
  return absl::DataLossError(
      StrCat(store.path().native(), ": edge ", begin, " of ",
             store.schema().RelationName(index),
             " is not the same in the in-lists and the out-lists"));
}

// Matters only for relations without in-lists; for others, Store::Open() has
// already checked the number of rows in each partition.
absl::Status VerifyFeatureRows(const Store& store, RelationIndex index) {
  const Relation& relation = store.schema().relations[index];
  if (!relation.feature.present()) return absl::OkStatus();
  int64_t rows = 0;
  for (const int part : store.mapped_partitions()) {
    rows += store.partition(part)->edges[index].feature.rows();
  }
  if (rows == relation.edge_count || !store.is_whole()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(StrCat(
      store.path().native(), ": ", store.schema().RelationName(index), " has ",
      rows, " rows of features for ", relation.edge_count, " edges"));
}

}  // namespace

absl::Status VerifyRelation(const Store& store, RelationIndex index) {
  const Relation& relation = store.schema().relations[index];
  const ListsVerifier in(store, index, Direction::kIn);
  const ListsVerifier out(store, index, Direction::kOut);
  if (relation.has_in) MILLRACE_RETURN_IF_ERROR(in.Verify());
  if (relation.has_out) MILLRACE_RETURN_IF_ERROR(out.Verify());
  if (relation.has_in && relation.has_out) {
    MILLRACE_RETURN_IF_ERROR(VerifySameEdges(store, index, in, out));
  }
  return VerifyFeatureRows(store, index);
}

}  // namespace millrace
