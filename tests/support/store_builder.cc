// SPDX-License-Identifier: Apache-2.0
#include "tests/support/store_builder.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <tuple>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"

namespace millrace::testing {
namespace {

// Returns the given rows of `array`, in the order of `rows`.
Array Take(const Array& array, const std::vector<int64_t>& rows) {
  std::vector<int64_t> shape = array.shape();
  shape[0] = static_cast<int64_t>(rows.size());
  Array taken = Array::Allocate(array.dtype(), shape);
  const size_t bytes = array.row_bytes();
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(taken.mutable_data() + i * bytes,
                array.data() + static_cast<size_t>(rows[i]) * bytes, bytes);
  }
  return taken;
}

template <typename T>
Array TakeValues(const std::vector<T>& values,
                 const std::vector<int64_t>& rows) {
  return Take(Array::Adopt(values), rows);
}

Array Ids(const std::vector<int64_t>& ids) {
  return Array::Adopt(std::vector<uint32_t>(ids.begin(), ids.end()));
}

ColumnSpec SpecOf(const Array& array) {
  if (!array.present()) return {};
  return {array.dtype(), {array.shape().begin() + 1, array.shape().end()}};
}

// How the nodes of one type are numbered.
struct Numbering {
  std::vector<int64_t> id_of;        // by original id
  std::vector<int64_t> original_of;  // by id
  std::vector<uint64_t> offsets;     // by partition
  std::vector<float> hotness;        // by original id; empty in a dataset
};

class Builder {
 public:
  Builder(const TestGraph& graph, int parts, StoreWriter writer)
      : graph_(graph), parts_(parts), writer_(std::move(writer)) {}

  absl::Status Build(const std::vector<std::vector<int>>& assignment,
                     bool neighbor_original_ids) {
    FillSchema(!assignment.empty());
    manifest_.partitioning.method = assignment.empty() ? "none" : "given";
    manifest_.neighbor_original_ids =
        neighbor_original_ids && !assignment.empty();
    for (size_t type = 0; type < graph_.types.size(); ++type) {
      Number(type, assignment.empty()
                       ? std::vector<int>(graph_.types[type].count, 0)
                       : assignment[type]);
    }
    for (int part = 0; part < parts_; ++part) {
      for (size_t type = 0; type < graph_.types.size(); ++type) {
        MILLRACE_RETURN_IF_ERROR(WriteNodes(part, type));
      }
      for (size_t i = 0; i < graph_.relations.size(); ++i) {
        MILLRACE_RETURN_IF_ERROR(WriteEdges(part, static_cast<int>(i)));
      }
    }
    for (const TestSplit& split : graph_.splits) {
      MILLRACE_RETURN_IF_ERROR(WriteSplit(split));
    }
    for (const EdgeSplitColumns& split : graph_.edge_splits) {
      MILLRACE_ASSIGN_OR_RETURN(
          EdgeSplitInfo info,
          WriteEdgeSplit(
              split, manifest_.schema, manifest_.books,
              [this](TypeIndex type, int64_t original) {
                return static_cast<uint64_t>(numbering_[type].id_of[original]);
              },
              [this](const std::string& path, const Array& array) {
                return writer_.Write(path, array);
              }));
      manifest_.edge_splits.push_back(std::move(info));
    }
    return writer_.Commit(manifest_);
  }

 private:
  void FillSchema(bool hotness) {
    Schema& schema = manifest_.schema;
    for (const TestType& type : graph_.types) {
      schema.node_types.push_back({.name = type.name,
                                   .count = type.count,
                                   .feature = SpecOf(type.feature),
                                   .label = SpecOf(type.label),
                                   .has_time = !type.time.empty(),
                                   .has_hotness = hotness});
    }
    for (const TestRelation& relation : graph_.relations) {
      const int src = schema.FindType(relation.src).value();
      const int dst = schema.FindType(relation.dst).value();
      const auto edges = static_cast<int64_t>(relation.edges.size());
      ListTime time = ListTime::kNone;
      if (!relation.time.empty()) {
        time = ListTime::kEdge;
      } else if (schema.node_types[src].has_time ||
                 schema.node_types[dst].has_time) {
        time = ListTime::kNeighbor;
      }
      schema.relations.push_back({.src = src,
                                  .name = relation.name,
                                  .dst = dst,
                                  .edge_count = edges,
                                  .max_edge_id = edges - 1,
                                  .has_in = relation.in,
                                  .has_out = relation.out,
                                  .has_weight = !relation.weight.empty(),
                                  .time = time,
                                  .has_type = !relation.type.empty(),
                                  .feature = SpecOf(relation.feature)});
    }
  }

  void Number(size_t type, const std::vector<int>& part_of) {
    const int64_t count = graph_.types[type].count;
    MILLRACE_CHECK(part_of.size() == static_cast<size_t>(count));
    Numbering numbering;
    numbering.hotness.assign(count, 0);
    for (size_t i = 0; i < graph_.relations.size(); ++i) {
      const Relation& relation = manifest_.schema.relations[i];
      for (const auto& [src, dst] : graph_.relations[i].edges) {
        if (relation.src == static_cast<int>(type)) ++numbering.hotness[src];
        if (relation.dst == static_cast<int>(type)) ++numbering.hotness[dst];
      }
    }
    if (!manifest_.schema.node_types[type].has_hotness) {
      numbering.hotness.assign(count, 0);
    }
    numbering.original_of.resize(count);
    std::iota(numbering.original_of.begin(), numbering.original_of.end(), 0);
    std::sort(numbering.original_of.begin(), numbering.original_of.end(),
              [&](int64_t a, int64_t b) {
                return std::tuple(part_of[a], -numbering.hotness[a], a) <
                       std::tuple(part_of[b], -numbering.hotness[b], b);
              });
    numbering.id_of.resize(count);
    for (int64_t id = 0; id < count; ++id) {
      numbering.id_of[numbering.original_of[id]] = id;
    }
    numbering.offsets.assign(parts_ + 1, 0);
    for (const int part : part_of) ++numbering.offsets[part + 1];
    std::partial_sum(numbering.offsets.begin(), numbering.offsets.end(),
                     numbering.offsets.begin());
    manifest_.books.emplace_back(numbering.offsets);
    numbering_.push_back(std::move(numbering));
  }

  // Original ids of the nodes of a partition, in the order of their ids.
  std::vector<int64_t> Originals(int part, size_t type) const {
    const Numbering& numbering = numbering_[type];
    const auto begin = numbering.original_of.begin();
    return {begin + static_cast<int64_t>(numbering.offsets[part]),
            begin + static_cast<int64_t>(numbering.offsets[part + 1])};
  }

  absl::Status WriteNodes(int part, size_t index) {
    const TestType& type = graph_.types[index];
    const std::vector<int64_t> rows = Originals(part, index);
    const auto write = [&](const char* column, const Array& array) {
      return writer_.Write(NodePath(part, type.name, column), array);
    };
    MILLRACE_RETURN_IF_ERROR(write("original_id", Ids(rows)));
    if (type.feature.present()) {
      MILLRACE_RETURN_IF_ERROR(write("feature", Take(type.feature, rows)));
    }
    if (type.label.present()) {
      MILLRACE_RETURN_IF_ERROR(write("label", Take(type.label, rows)));
    }
    if (!type.time.empty()) {
      MILLRACE_RETURN_IF_ERROR(write("time", TakeValues(type.time, rows)));
    }
    const Numbering& numbering = numbering_[index];
    if (manifest_.schema.node_types[index].has_hotness) {
      MILLRACE_RETURN_IF_ERROR(
          write("hotness", TakeValues(numbering.hotness, rows)));
    }
    const int64_t width = (type.count + parts_ - 1) / parts_;
    const int64_t begin = std::min<int64_t>(part * width, type.count);
    const int64_t end = std::min<int64_t>(begin + width, type.count);
    return writer_.Write(
        LookupPath(part, type.name),
        Ids({numbering.id_of.begin() + begin, numbering.id_of.begin() + end}));
  }

  // Edge ids of the lists of one partition in order, and their indptr.
  struct Lists {
    std::vector<int64_t> indptr = {0};
    std::vector<int64_t> edges;
    std::vector<int64_t> times;
  };

  int64_t TimeOf(const TestRelation& relation, const TestType& neighbors,
                 int64_t edge, int64_t neighbor) const {
    if (!relation.time.empty()) return relation.time[edge];
    return neighbors.time.empty() ? 0 : neighbors.time[neighbor];
  }

  Lists ListsOf(int part, int index, Direction direction) const {
    const TestRelation& relation = graph_.relations[index];
    const Relation& schema = manifest_.schema.relations[index];
    const bool in = direction == Direction::kIn;
    const TestType& neighbors = graph_.types[in ? schema.src : schema.dst];
    const int type = in ? schema.dst : schema.src;
    std::vector<std::vector<int64_t>> edges_of(graph_.types[type].count);
    for (size_t i = 0; i < relation.edges.size(); ++i) {
      const auto [src, dst] = relation.edges[i];
      edges_of[in ? dst : src].push_back(static_cast<int64_t>(i));
    }
    Lists lists;
    for (const int64_t node : Originals(part, type)) {
      std::vector<std::pair<int64_t, int64_t>> list;  // (time, edge id)
      for (const int64_t edge : edges_of[node]) {
        const auto [src, dst] = relation.edges[edge];
        list.emplace_back(TimeOf(relation, neighbors, edge, in ? src : dst),
                          edge);
      }
      std::sort(list.begin(), list.end());
      for (const auto& [time, edge] : list) {
        lists.times.push_back(time);
        lists.edges.push_back(edge);
      }
      lists.indptr.push_back(static_cast<int64_t>(lists.edges.size()));
    }
    return lists;
  }

  absl::Status WriteLists(int part, int index, Direction direction) {
    const TestRelation& relation = graph_.relations[index];
    const Relation& schema = manifest_.schema.relations[index];
    const bool in = direction == Direction::kIn;
    const Lists lists = ListsOf(part, index, direction);
    const std::string name = manifest_.schema.RelationName(index);
    const auto write = [&](const char* column, const Array& array) {
      return writer_.Write(ListPath(part, name, direction, column), array);
    };
    std::vector<int64_t> indices;
    std::vector<int64_t> originals;
    for (const int64_t edge : lists.edges) {
      const auto [src, dst] = relation.edges[edge];
      originals.push_back(in ? src : dst);
      indices.push_back(in ? numbering_[schema.src].id_of[src]
                           : numbering_[schema.dst].id_of[dst]);
    }
    MILLRACE_RETURN_IF_ERROR(write("indptr", Array::Adopt(lists.indptr)));
    MILLRACE_RETURN_IF_ERROR(write("indices", Ids(indices)));
    MILLRACE_RETURN_IF_ERROR(write("edge_id", Array::Adopt(lists.edges)));
    if (manifest_.neighbor_original_ids) {
      MILLRACE_RETURN_IF_ERROR(write("neighbor_original_id", Ids(originals)));
    }
    if (!relation.weight.empty()) {
      MILLRACE_RETURN_IF_ERROR(
          write("weight", TakeValues(relation.weight, lists.edges)));
      MILLRACE_RETURN_IF_ERROR(
          write("weight_sum", WeightSumsOf(relation, lists)));
    }
    if (!relation.type.empty()) {
      MILLRACE_RETURN_IF_ERROR(
          write("type", TakeValues(relation.type, lists.edges)));
    }
    if (ListsHaveTime(manifest_.schema, index, direction)) {
      MILLRACE_RETURN_IF_ERROR(write("time", Array::Adopt(lists.times)));
    }
    if (!in && relation.feature.present()) {
      MILLRACE_RETURN_IF_ERROR(
          write("slot", Array::Adopt(SlotsOf(index, lists))));
    }
    return absl::OkStatus();
  }

  // Follows the documented rule with its own arithmetic: halves or doubles the
  // scale until the largest weight has 32 bits.
  static Array WeightSumsOf(const TestRelation& relation, const Lists& lists) {
    std::vector<uint64_t> sums;
    for (size_t row = 0; row + 1 < lists.indptr.size(); ++row) {
      double largest = 0;
      for (int64_t i = lists.indptr[row]; i < lists.indptr[row + 1]; ++i) {
        largest = std::max<double>(largest, relation.weight[lists.edges[i]]);
      }
      double scale = 1;
      while (largest > 0 && largest * scale >= 4294967296.0) scale /= 2;
      while (largest > 0 && largest * scale < 2147483648.0) scale *= 2;
      uint64_t sum = 0;
      for (int64_t i = lists.indptr[row]; i < lists.indptr[row + 1]; ++i) {
        const double weight = relation.weight[lists.edges[i]];
        if (weight > 0) {
          sum += std::max<uint64_t>(1, static_cast<uint64_t>(weight * scale));
        }
        sums.push_back(sum);
      }
    }
    return Array::Adopt(std::move(sums));
  }

  std::vector<int64_t> SlotsOf(int index, const Lists& out) const {
    std::vector<int64_t> row_of(graph_.relations[index].edges.size());
    for (int part = 0; part < parts_; ++part) {
      const Lists in = ListsOf(part, index, Direction::kIn);
      for (size_t row = 0; row < in.edges.size(); ++row) {
        row_of[in.edges[row]] = static_cast<int64_t>(row);
      }
    }
    std::vector<int64_t> slots;
    for (const int64_t edge : out.edges) slots.push_back(row_of[edge]);
    return slots;
  }

  absl::Status WriteEdges(int part, int index) {
    const TestRelation& relation = graph_.relations[index];
    if (relation.in) {
      MILLRACE_RETURN_IF_ERROR(WriteLists(part, index, Direction::kIn));
    }
    if (relation.out) {
      MILLRACE_RETURN_IF_ERROR(WriteLists(part, index, Direction::kOut));
    }
    if (!relation.feature.present()) return absl::OkStatus();
    return writer_.Write(
        EdgeFeaturePath(part, manifest_.schema.RelationName(index)),
        Take(relation.feature, ListsOf(part, index, Direction::kIn).edges));
  }

  absl::Status WriteSplit(const TestSplit& split) {
    const int type = manifest_.schema.FindType(split.type).value();
    SplitInfo info{.type = type,
                   .name = split.name,
                   .count = static_cast<int64_t>(split.ids.size()),
                   .part_counts = std::vector<int64_t>(parts_, 0)};
    std::vector<int64_t> ids;
    for (const int64_t original : split.ids) {
      ids.push_back(numbering_[type].id_of[original]);
      ++info.part_counts[manifest_.books[type].Owner(ids.back())];
    }
    manifest_.splits.push_back(info);
    MILLRACE_RETURN_IF_ERROR(
        writer_.Write(SplitPath(split.type, split.name, "id"), Ids(ids)));
    if (!graph_.types[type].time.empty()) {
      MILLRACE_RETURN_IF_ERROR(
          writer_.Write(SplitPath(split.type, split.name, "time"),
                        TakeValues(graph_.types[type].time, split.ids)));
    }
    return writer_.Write(SplitPath(split.type, split.name, "original_id"),
                         Array::Adopt(split.ids));
  }

  const TestGraph& graph_;
  const int parts_;
  StoreWriter writer_;
  Manifest manifest_;
  std::vector<Numbering> numbering_;  // by node type
};

}  // namespace

absl::Status BuildDataset(const TestGraph& graph,
                          const std::filesystem::path& target) {
  return BuildStore(graph, 1, {}, target);
}

absl::Status BuildStore(const TestGraph& graph, int parts,
                        const std::vector<std::vector<int>>& assignment,
                        const std::filesystem::path& target,
                        bool neighbor_original_ids) {
  MILLRACE_ASSIGN_OR_RETURN(StoreWriter writer, StoreWriter::Create(target));
  return Builder(graph, parts, std::move(writer))
      .Build(assignment, neighbor_original_ids);
}

std::vector<std::vector<int>> SpreadAssignment(const TestGraph& graph,
                                               int parts) {
  std::vector<std::vector<int>> assignment;
  for (size_t type = 0; type < graph.types.size(); ++type) {
    std::vector<int>& part_of = assignment.emplace_back();
    for (int64_t v = 0; v < graph.types[type].count; ++v) {
      part_of.push_back(
          static_cast<int>((v * 7 + static_cast<int64_t>(type)) % parts));
    }
  }
  return assignment;
}

Array RampFeature(int64_t rows, int64_t dims) {
  Array array = Array::Allocate(DType::kFloat32, {rows, dims});
  const std::span<float> values = array.MutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto row = i / static_cast<size_t>(dims);
    const auto column = i % static_cast<size_t>(dims);
    values[i] = static_cast<float>(row) + static_cast<float>(column) / 8;
  }
  return array;
}

TestGraph SmallGraph() {
  TestGraph graph;
  graph.types.push_back(
      {.count = 8,
       .feature = RampFeature(8, 3),
       .label = Array::Adopt(std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1})});
  graph.relations.push_back({.edges = {{0, 1},
                                       {1, 0},
                                       {2, 1},
                                       {3, 1},
                                       {0, 1},
                                       {4, 4},
                                       {5, 2},
                                       {6, 5},
                                       {7, 0},
                                       {1, 7},
                                       {3, 0},
                                       {2, 6}}});
  graph.splits.push_back({.name = "train", .ids = {0, 1, 4, 7}});
  graph.splits.push_back({.name = "test", .ids = {2, 5}});
  return graph;
}

TestGraph RichGraph() {
  TestGraph graph;
  graph.types.push_back({.name = "author", .count = 5});
  graph.types.push_back({.name = "paper",
                         .count = 7,
                         .feature = RampFeature(7, 4),
                         .label = RampFeature(7, 2),
                         .time = {5, 3, 9, 1, 7, 2, 8}});
  graph.relations.push_back(
      {.src = "author",
       .name = "writes",
       .dst = "paper",
       .edges = {{0, 0}, {1, 0}, {2, 3}, {4, 6}, {0, 2}, {3, 0}, {2, 1}},
       .weight = {1, 2, 0.5F, 4, 1, 3, 2},
       .feature = RampFeature(7, 2)});
  graph.relations.push_back(
      {.src = "paper",
       .name = "cites",
       .dst = "paper",
       .edges = {{0, 3}, {2, 0}, {4, 0}, {6, 0}, {2, 5}, {6, 5}, {1, 3}},
       .type = {0, 1, 2, 0, 1, 2, 0}});
  graph.relations.push_back({.src = "author",
                             .name = "knows",
                             .dst = "author",
                             .edges = {{0, 1}, {2, 1}, {3, 1}, {1, 4}, {0, 4}},
                             .time = {30, 10, 20, 10, 10},
                             .out = false});
  graph.splits.push_back({.type = "paper", .name = "train", .ids = {0, 3, 5}});
  graph.splits.push_back({.type = "author", .name = "test", .ids = {1, 4}});
  return graph;
}

absl::Status WriteGraph(const TestGraph& graph, int parts,
                        const std::filesystem::path& target) {
  return parts == 0
             ? BuildDataset(graph, target)
             : BuildStore(graph, parts, SpreadAssignment(graph, parts), target);
}

std::filesystem::path TestDirectory(const std::string& name) {
  // Uses memory if possible, because the writers fsync every file.
  const std::filesystem::path memory = "/dev/shm";
  const std::filesystem::path directory =
      (access(memory.c_str(), W_OK) == 0
           ? memory
           : std::filesystem::temp_directory_path()) /
      ("millrace-test-" + std::to_string(getpid()) + "-" + name);
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

}  // namespace millrace::testing
