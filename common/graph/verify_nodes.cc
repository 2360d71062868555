// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <vector>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/verify_content.h"

namespace millrace {
namespace {

// The same as OriginalIdProblem(), by the table of original ids alone; nothing
// if the partition that has it is not mapped.
std::string TableProblem(const Store& store, TypeIndex type, uint64_t id,
                         uint64_t original) {
  const PartitionBook& book = store.book(type);
  if (original >= book.node_count()) {
    return StrCat("original id ", original, " is out of range: there are ",
                  book.node_count(), " nodes");
  }
  const uint64_t width = book.lookup_width();
  const Partition* const partition =
      store.partition(static_cast<int>(original / width));
  if (partition == nullptr) return "";
  const uint64_t found = IdReader(
      partition->nodes[type].lookup)[static_cast<int64_t>(original % width)];
  if (found == id) return "";
  return StrCat("original id ", original, " belongs to id ", found, ", not ",
                id);
}

// Checks that each original id occurs once in the partitions, and that
// in a dataset, id i is original id i.
absl::Status VerifyOriginalIds(const Store& store, TypeIndex index) {
  const NodeType& type = store.schema().node_types[index];
  const auto count = static_cast<uint64_t>(type.count);
  const bool dataset = store.manifest().partitioning.method == "none";
  NumberSet seen(count, count);
  for (const int part : store.mapped_partitions()) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    const std::string file = NodePath(part, type.name, "original_id");
    const IdReader ids(store.partition(part)->nodes[index].original_id);
    for (int64_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= count) {
        return Violation(
            store, file, i,
            StrCat(ids[i], " is out of range: there are ", count, " nodes"));
      }
      if (!seen.Insert(ids[i])) {
        return Violation(store, file, i, StrCat(ids[i], " occurs twice"));
      }
      if (dataset && ids[i] != static_cast<uint64_t>(i)) {
        return Violation(store, file, i,
                         StrCat(ids[i],
                                " in a dataset, whose ids are the "
                                "original ids"));
      }
    }
  }
  return absl::OkStatus();
}

// Checks that nodes are in the order of descending hotness, then ascending
// original id.
absl::Status VerifyOrder(const Store& store, TypeIndex index, int part) {
  const NodeType& type = store.schema().node_types[index];
  const NodeColumns& nodes = store.partition(part)->nodes[index];
  const std::span<const float> hotness = nodes.hotness.As<float>();
  const IdReader originals(nodes.original_id);
  for (int64_t i = 0; i < originals.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (type.has_hotness && std::isnan(hotness[at])) {
      return Violation(store, NodePath(part, type.name, "hotness"), i,
                       "not a number");
    }
    if (i == 0) continue;
    if (type.has_hotness && hotness[at] > hotness[at - 1]) {
      return Violation(store, NodePath(part, type.name, "hotness"), i,
                       StrCat(hotness[at], " follows ", hotness[at - 1],
                              "; hotness must not increase"));
    }
    const bool tie = !type.has_hotness || hotness[at] == hotness[at - 1];
    if (tie && originals[i] < originals[i - 1]) {
      return Violation(store, NodePath(part, type.name, "original_id"), i,
                       StrCat(originals[i], " follows ", originals[i - 1],
                              " of the same hotness"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyLookup(const Store& store, TypeIndex index, int part) {
  const NodeType& type = store.schema().node_types[index];
  const std::string file = LookupPath(part, type.name);
  const IdReader ids(store.partition(part)->nodes[index].lookup);
  const uint64_t first =
      store.book(index).lookup_width() * static_cast<uint64_t>(part);
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= static_cast<uint64_t>(type.count)) {
      return Violation(
          store, file, i,
          StrCat(ids[i], " is out of range: there are ", type.count, " nodes"));
    }
    const std::string problem = OriginalIdProblem(
        store, index, ids[i], first + static_cast<uint64_t>(i));
    if (!problem.empty()) return Violation(store, file, i, problem);
  }
  return absl::OkStatus();
}

// Checks that no id is twice in the tables, and that those that are here name
// the nodes of the mapped partitions. With all partitions this follows from
// VerifyOriginalIds() and VerifyLookup().
absl::Status VerifyLookupOfPart(const Store& store, TypeIndex index,
                                NumberSet& seen, int part) {
  const NodeType& type = store.schema().node_types[index];
  const NodeColumns& nodes = store.partition(part)->nodes[index];
  const IdReader ids(nodes.lookup);
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (seen.Insert(ids[i])) continue;
    return Violation(store, LookupPath(part, type.name), i,
                     StrCat(ids[i], " occurs twice"));
  }
  const IdReader originals(nodes.original_id);
  const PartitionBook& book = store.book(index);
  for (int64_t i = 0; i < originals.size(); ++i) {
    const uint64_t id = book.begin(part) + static_cast<uint64_t>(i);
    const std::string problem = TableProblem(store, index, id, originals[i]);
    if (problem.empty()) continue;
    return Violation(store, NodePath(part, type.name, "original_id"), i,
                     problem);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Violation(const Store& store, const std::string& file,
                       int64_t index, std::string_view what) {
  return absl::DataLossError(
      StrCat((store.path() / file).native(), "[", index, "]: ", what));
}

NodeRow FindNode(const Store& store, TypeIndex type, uint64_t id) {
  const PartitionBook& book = store.book(type);
  const int part = book.Owner(id);
  const Partition* const partition = store.partition(part);
  return {part, static_cast<int64_t>(id - book.begin(part)),
          partition == nullptr ? nullptr : &partition->nodes[type]};
}

std::string OriginalIdProblem(const Store& store, TypeIndex type, uint64_t id,
                              uint64_t original) {
  const NodeRow node = FindNode(store, type, id);
  if (node.columns == nullptr) return TableProblem(store, type, id, original);
  const uint64_t owned = IdReader(node.columns->original_id)[node.row];
  if (owned == original) return "";
  return StrCat("id ", id, " has original id ", owned, ", not ", original);
}

absl::Status VerifyNodes(const Store& store, TypeIndex type) {
  MILLRACE_RETURN_IF_ERROR(VerifyOriginalIds(store, type));
  const auto count =
      static_cast<uint64_t>(store.schema().node_types[type].count);
  NumberSet seen(count, store.is_whole() ? 0 : count);
  for (const int part : store.mapped_partitions()) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_RETURN_IF_ERROR(VerifyOrder(store, type, part));
    MILLRACE_RETURN_IF_ERROR(VerifyLookup(store, type, part));
    if (store.is_whole()) continue;
    MILLRACE_RETURN_IF_ERROR(VerifyLookupOfPart(store, type, seen, part));
  }
  return absl::OkStatus();
}

absl::Status VerifySplit(const Store& store, const SplitInfo& info) {
  const NodeType& type = store.schema().node_types[info.type];
  const std::string id_file = SplitPath(type.name, info.name, "id");
  const std::string original_file =
      SplitPath(type.name, info.name, "original_id");
  MILLRACE_ASSIGN_OR_RETURN(const Split* split,
                            store.FindSplit(info.type, info.name));
  const IdReader ids(split->id);
  const std::span<const int64_t> originals = split->original_id.As<int64_t>();
  std::vector<int64_t> counts(static_cast<size_t>(store.partition_count()), 0);
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t original = originals[static_cast<size_t>(i)];
    const int64_t before = i == 0 ? -1 : originals[static_cast<size_t>(i - 1)];
    if (original <= before || original >= type.count) {
      return Violation(
          store, original_file, i,
          StrCat(original, " follows ", before,
                 "; original ids must be ascending and below ", type.count));
    }
    if (ids[i] >= static_cast<uint64_t>(type.count)) {
      return Violation(
          store, id_file, i,
          StrCat(ids[i], " is out of range: there are ", type.count, " nodes"));
    }
    const std::string problem = OriginalIdProblem(
        store, info.type, ids[i], static_cast<uint64_t>(original));
    if (!problem.empty()) return Violation(store, id_file, i, problem);
    const NodeRow node = FindNode(store, info.type, ids[i]);
    if (split->time.present() && node.columns != nullptr) {
      const int64_t time = split->time.As<int64_t>()[static_cast<size_t>(i)];
      const int64_t expected = node.columns->time.As<int64_t>()[node.row];
      if (time != expected) {
        return Violation(store, SplitPath(type.name, info.name, "time"), i,
                         StrCat(time, ", but the node's time is ", expected));
      }
    }
    ++counts[static_cast<size_t>(node.part)];
  }
  if (counts == info.part_counts) return absl::OkStatus();
  return absl::DataLossError(StrCat(
      (store.path() / "store.json").native(), ": 'part_counts' of split '",
      info.name, "' does not match the owners of its seeds"));
}

namespace {

// Checks that each id in a split's column matches the original id beside it.
absl::Status VerifySplitColumn(const Store& store, TypeIndex type,
                               const Array& ids, const Array& originals,
                               const std::string& file) {
  const NodeType& nodes = store.schema().node_types[type];
  const std::span<const int64_t> expected = originals.As<int64_t>();
  for (int64_t i = 0; i < ids.element_count(); ++i) {
    const auto id = static_cast<uint64_t>(ids.IntegerAt(i));
    if (id >= static_cast<uint64_t>(nodes.count)) {
      return Violation(
          store, file, i,
          StrCat(id, " is out of range: there are ", nodes.count, " nodes"));
    }
    // A negative number becomes one that is out of range.
    const std::string problem = OriginalIdProblem(
        store, type, id,
        static_cast<uint64_t>(expected[static_cast<size_t>(i)]));
    if (!problem.empty()) return Violation(store, file, i, problem);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyEdgeSplit(const Store& store, size_t index) {
  const EdgeSplitInfo& info = store.manifest().edge_splits[index];
  const EdgeSplit& split = store.edge_split(index);
  const Relation& relation = store.schema().relations[info.relation];
  const auto file = [&](std::string_view column) {
    return SplitPath(store.schema().RelationName(info.relation), info.name,
                     column);
  };
  MILLRACE_RETURN_IF_ERROR(VerifySplitColumn(
      store, relation.src, split.src, split.src_original_id, file("src")));
  MILLRACE_RETURN_IF_ERROR(VerifySplitColumn(
      store, relation.dst, split.dst, split.dst_original_id, file("dst")));
  if (split.negative.present()) {
    MILLRACE_RETURN_IF_ERROR(
        VerifySplitColumn(store, relation.dst, split.negative,
                          split.negative_original_id, file("negative")));
  }
  std::vector<int64_t> counts(static_cast<size_t>(store.partition_count()), 0);
  const IdReader dst(split.dst);
  for (int64_t i = 0; i < dst.size(); ++i) {
    ++counts[store.book(relation.dst).Owner(dst[i])];
  }
  if (counts == info.part_counts) return absl::OkStatus();
  return absl::DataLossError(StrCat(
      (store.path() / "store.json").native(), ": 'part_counts' of edge split '",
      info.name, "' does not match the owners of its destinations"));
}

}  // namespace millrace
