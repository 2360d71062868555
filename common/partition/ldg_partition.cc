// SPDX-License-Identifier: Apache-2.0
#include "common/partition/ldg_partition.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/partition/list_scan.h"

namespace millrace {
namespace {

constexpr PartitionId kUnassigned = kMaxPartitions;
// Slack at the start, as a fraction of the final capacity.
constexpr double kLdgHeadStart = 1.0 / 64;
constexpr int64_t kNodesPerStep = 1 << 14;
constexpr int64_t kEntriesPerDrop = int64_t{1} << 22;

// The lists of one relation and direction, and how far their pages have been
// dropped.
struct Cursor {
  DatasetLists lists;
  int64_t dropped = 0;
};

class LdgPartitioner {
 public:
  LdgPartitioner(const Store& dataset, int parts)
      : dataset_(dataset),
        parts_(static_cast<size_t>(parts)),
        edges_(parts_, 0),
        common_(parts_, 0) {}

  absl::StatusOr<Assignment> Run();

 private:
  absl::Status Prepare();
  size_t NextType() const;
  absl::Status Place(size_t type, int64_t node);
  absl::Status CountNeighbors(Cursor& cursor, int64_t node);
  template <typename Id>
  absl::Status CountList(const Cursor& cursor, int64_t begin, int64_t end);
  int64_t InDegree(size_t type, int64_t node) const;
  size_t Choose(size_t type, int64_t in_degree) const;

  const Store& dataset_;
  const size_t parts_;
  int64_t edge_capacity_ = 0;
  int64_t placed_edges_ = 0;
  std::vector<int64_t> node_capacity_;  // per type
  // By type of the nodes that have the lists.
  std::vector<std::vector<Cursor>> cursors_;
  // In-degrees per type, of relations without in-lists.
  std::vector<std::vector<int64_t>> degrees_;
  Assignment assignment_;
  std::vector<int64_t> placed_;              // per type
  std::vector<std::vector<int64_t>> nodes_;  // [type][part]
  std::vector<int64_t> edges_;               // [part]
  // For the current node, the number of placed neighbours per part, and the
  // parts that have any.
  std::vector<int64_t> common_;
  std::vector<PartitionId> touched_;
};

absl::Status LdgPartitioner::Prepare() {
  const Schema& schema = dataset_.schema();
  const size_t types = schema.node_types.size();
  const auto parts = static_cast<double>(parts_);
  cursors_.resize(types);
  degrees_.resize(types);
  placed_.assign(types, 0);
  nodes_.assign(types, std::vector<int64_t>(parts_, 0));
  for (const NodeType& type : schema.node_types) {
    node_capacity_.push_back(static_cast<int64_t>(
        std::ceil(kLdgSlack * static_cast<double>(type.count) / parts)));
    assignment_.emplace_back(static_cast<size_t>(type.count), kUnassigned);
  }
  int64_t edges = 0;
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    const Relation& relation = schema.relations[i];
    edges += relation.edge_count;
    for (const Direction direction : {Direction::kIn, Direction::kOut}) {
      const bool in = direction == Direction::kIn;
      if (!(in ? relation.has_in : relation.has_out)) continue;
      DatasetLists lists =
          FindLists(dataset_, static_cast<RelationIndex>(i), direction);
      MILLRACE_RETURN_IF_ERROR(CheckStarts(lists));
      std::vector<Cursor>& cursors = cursors_[lists.node_type];
      cursors.push_back({std::move(lists)});
    }
    if (!relation.has_in) {
      degrees_[relation.dst].resize(
          static_cast<size_t>(schema.node_types[relation.dst].count), 0);
      MILLRACE_RETURN_IF_ERROR(AddInDegrees(
          dataset_, static_cast<RelationIndex>(i), degrees_[relation.dst]));
    }
  }
  edge_capacity_ = static_cast<int64_t>(
      std::ceil(kLdgSlack * static_cast<double>(edges) / parts));
  return absl::OkStatus();
}

// The type of which the smallest share of nodes has been placed.
size_t LdgPartitioner::NextType() const {
  size_t best = assignment_.size();
  for (size_t type = 0; type < assignment_.size(); ++type) {
    const auto count = assignment_[type].size();
    if (static_cast<size_t>(placed_[type]) == count) continue;
    if (best == assignment_.size() ||
        static_cast<double>(placed_[type]) *
                static_cast<double>(assignment_[best].size()) <
            static_cast<double>(placed_[best]) * static_cast<double>(count)) {
      best = type;
    }
  }
  return best;
}

template <typename Id>
absl::Status LdgPartitioner::CountList(const Cursor& cursor, int64_t begin,
                                       int64_t end) {
  const std::span<const Id> entries = cursor.lists.lists->indices.As<Id>();
  const auto& owners = assignment_[cursor.lists.neighbor_type];
  for (int64_t entry = begin; entry < end; ++entry) {
    const uint64_t neighbor = entries[entry];
    if (neighbor >= owners.size()) {
      return NeighborError(cursor.lists, entry, neighbor);
    }
    const PartitionId owner = owners[neighbor];
    if (owner == kUnassigned) continue;
    if (common_[owner]++ == 0) touched_.push_back(owner);
  }
  return absl::OkStatus();
}

absl::Status LdgPartitioner::CountNeighbors(Cursor& cursor, int64_t node) {
  const std::span<const int64_t> starts = cursor.lists.starts();
  const int64_t begin = starts[node];
  const int64_t end = starts[node + 1];
  const Array& entries = cursor.lists.lists->indices;
  MILLRACE_RETURN_IF_ERROR(entries.dtype() == DType::kUint32
                               ? CountList<uint32_t>(cursor, begin, end)
                               : CountList<uint64_t>(cursor, begin, end));
  if (end - cursor.dropped >= kEntriesPerDrop) {
    DropRows(entries, cursor.dropped, end);
    cursor.dropped = end;
  }
  return absl::OkStatus();
}

int64_t LdgPartitioner::InDegree(size_t type, int64_t node) const {
  int64_t degree = degrees_[type].empty() ? 0 : degrees_[type][node];
  for (const Cursor& cursor : cursors_[type]) {
    if (cursor.lists.direction != Direction::kIn) continue;
    const std::span<const int64_t> starts = cursor.lists.starts();
    degree += starts[node + 1] - starts[node];
  }
  return degree;
}

// The limits of a partition grow with what has been placed. If only the final
// sizes were limited, one partition would run out of room for nodes and another
// for in-edges, and no partition would have room for the last nodes. If there
// is no room anywhere, chooses the partition that exceeds its limits least.
size_t LdgPartitioner::Choose(size_t type, int64_t in_degree) const {
  const std::vector<int64_t>& nodes = nodes_[type];
  const double share = kLdgSlack / static_cast<double>(parts_);
  const double node_limit =
      share * static_cast<double>(placed_[type]) +
      static_cast<double>(node_capacity_[type]) * kLdgHeadStart + 1;
  const double edge_limit =
      share * static_cast<double>(placed_edges_ + in_degree) +
      static_cast<double>(edge_capacity_) * kLdgHeadStart + 1;
  size_t best = parts_;
  double best_score = -std::numeric_limits<double>::infinity();
  double best_load = 0;
  for (size_t part = 0; part < parts_; ++part) {
    if (nodes[part] >= node_capacity_[type]) continue;
    const double node_load = static_cast<double>(nodes[part] + 1) / node_limit;
    const double edge_load =
        in_degree == 0
            ? 0
            : static_cast<double>(edges_[part] + in_degree) / edge_limit;
    const double load = std::max(node_load, edge_load);
    const double score =
        load <= 1 ? static_cast<double>(common_[part]) * (1 - load) : -load;
    if (score > best_score || (score == best_score && load < best_load)) {
      best = part;
      best_score = score;
      best_load = load;
    }
  }
  return best;
}

absl::Status LdgPartitioner::Place(size_t type, int64_t node) {
  for (Cursor& cursor : cursors_[type]) {
    MILLRACE_RETURN_IF_ERROR(CountNeighbors(cursor, node));
  }
  const int64_t in_degree = InDegree(type, node);
  const size_t part = Choose(type, in_degree);
  for (const PartitionId owner : touched_) common_[owner] = 0;
  touched_.clear();
  assignment_[type][node] = static_cast<PartitionId>(part);
  ++nodes_[type][part];
  edges_[part] += in_degree;
  placed_edges_ += in_degree;
  return absl::OkStatus();
}

absl::StatusOr<Assignment> LdgPartitioner::Run() {
  MILLRACE_RETURN_IF_ERROR(Prepare());
  int64_t total = 0;
  for (const auto& owners : assignment_) {
    total += static_cast<int64_t>(owners.size());
  }
  Progress progress("ldg", total, "nodes");
  for (int64_t done = 0; done < total; ++done) {
    const size_t type = NextType();
    MILLRACE_RETURN_IF_ERROR(Place(type, placed_[type]++));
    if (done % kNodesPerStep == 0) {
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      progress.Set(done);
    }
  }
  progress.Finish();
  return std::move(assignment_);
}

}  // namespace

absl::StatusOr<Assignment> AssignLdg(const Store& dataset, int parts) {
  return LdgPartitioner(dataset, parts).Run();
}

}  // namespace millrace
