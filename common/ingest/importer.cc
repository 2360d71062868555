// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/importer.h"

#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/array.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"
#include "common/ingest/edge_division.h"
#include "common/ingest/edge_selection.h"
#include "common/ingest/edge_split.h"
#include "common/ingest/node_counts.h"
#include "common/ingest/node_import.h"
#include "common/ingest/relation_import.h"
#include "common/ingest/split_import.h"

namespace millrace {
namespace {

constexpr std::array<const char*, 3> kFractionNames = {"train", "valid",
                                                       "test"};

// Names become folders and parts of SRC__NAME__DST.
absl::Status CheckName(const std::string& what, const std::string& name) {
  const bool valid = !name.empty() && name[0] != '.' &&
                     name.find_first_of("/=,\n") == std::string::npos;
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(what, " \"", name,
             "\": a name may not be empty, start with '.', or hold "
             "'/', '=' or ','"));
}

absl::Status CheckNames(const RawGraph& graph) {
  std::set<std::string> names;
  for (const RawNodes& nodes : graph.nodes) {
    MILLRACE_RETURN_IF_ERROR(CheckName("node type", nodes.name));
    if (absl::StrContains(nodes.name, "__")) {
      return absl::InvalidArgumentError(
          StrCat("node type \"", nodes.name,
                 "\": \"__\" separates the parts of relation names"));
    }
    if (!names.insert(nodes.name).second) {
      return absl::InvalidArgumentError(
          StrCat("node type \"", nodes.name, "\" is given twice"));
    }
  }
  for (const RawEdges& edges : graph.edges) {
    MILLRACE_RETURN_IF_ERROR(CheckName("relation", edges.name));
    if (!names.insert(graph.RelationName(edges)).second) {
      return absl::InvalidArgumentError(
          StrCat("relation ", graph.RelationName(edges), " is given twice"));
    }
  }
  return absl::OkStatus();
}

class Importer {
 public:
  Importer(const RawGraph& graph, const ImportOptions& options,
           StoreWriter& store)
      : graph_(graph), options_(options), store_(store) {}

  absl::StatusOr<Manifest> Run() {
    MILLRACE_RETURN_IF_ERROR(AddNodes());
    EdgeDivision division;
    if (!options_.edge_split_fractions.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(division, DivideEdges(graph_, options_));
    }
    MILLRACE_RETURN_IF_ERROR(AddRelations(division));
    for (const RawSplit& split : graph_.splits) {
      const NodeType& type = manifest_.schema.node_types[split.type];
      MILLRACE_ASSIGN_OR_RETURN(
          std::vector<int64_t> ids,
          ReadSplitIds(*split.ids, type.count, type.name));
      MILLRACE_RETURN_IF_ERROR(
          AddSplit(split.type, split.name, std::move(ids)));
    }
    for (const RawEdgeSplit& split : graph_.edge_splits) {
      MILLRACE_RETURN_IF_ERROR(ImportEdgeSplit(split));
    }
    if (!options_.edge_split_fractions.empty()) {
      MILLRACE_RETURN_IF_ERROR(AddEdgeFractions(std::move(division)));
    }
    return std::move(manifest_);
  }

 private:
  absl::Status ImportEdgeSplit(const RawEdgeSplit& split) {
    const RawEdges& edges = graph_.edges[split.edges];
    if (split.ids != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> ids,
                                ReadIntegers(*split.ids));
      return AddSelected(split.edges,
                         {{split.name, std::move(ids), split.ids}});
    }
    MILLRACE_ASSIGN_OR_RETURN(EdgeSplitColumns columns, ReadEdgeSplit(split));
    const auto src = columns.src.As<int64_t>(), dst = columns.dst.As<int64_t>();
    for (size_t i = 0; i < src.size(); ++i) {
      for (const auto& [type, node] :
           {std::pair(edges.src, src[i]), std::pair(edges.dst, dst[i])}) {
        const RawNodes& nodes = graph_.nodes[type];
        if (node >= 0 && node < nodes.count) continue;
        return absl::InvalidArgumentError(
            StrCat(split.endpoints->Where(static_cast<int64_t>(i)), ": node ",
                   node, " is out of range: node type ", nodes.name, " has ",
                   nodes.count, " nodes, ids are 0 to ", nodes.count - 1));
      }
    }
    return AddEdgeSplit(split.edges, std::move(columns));
  }

  absl::Status AddEdgeFractions(EdgeDivision division) {
    std::vector<EdgeSelection> selections;
    for (size_t i = 0; i < division.ids.size(); ++i) {
      selections.push_back({kFractionNames[i], std::move(division.ids[i])});
    }
    return AddSelected(division.edges, std::move(selections));
  }

  absl::Status AddSelected(size_t edges,
                           std::vector<EdgeSelection> selections) {
    MILLRACE_ASSIGN_OR_RETURN(
        std::vector<EdgeSplitColumns> splits,
        SelectEdges(graph_, graph_.edges[edges], std::move(selections)));
    for (EdgeSplitColumns& columns : splits) {
      MILLRACE_RETURN_IF_ERROR(AddEdgeSplit(edges, std::move(columns)));
    }
    return absl::OkStatus();
  }

  // In a dataset, ids are original ids.
  absl::Status AddEdgeSplit(size_t edges, EdgeSplitColumns columns) {
    columns.relation = static_cast<RelationIndex>(edges);
    MILLRACE_ASSIGN_OR_RETURN(
        EdgeSplitInfo info,
        WriteEdgeSplit(
            columns, manifest_.schema, manifest_.books,
            [](TypeIndex, int64_t original) {
              return static_cast<uint64_t>(original);
            },
            [this](const std::string& path, const Array& array) {
              return store_.Write(path, array);
            }));
    manifest_.edge_splits.push_back(std::move(info));
    return absl::OkStatus();
  }

  absl::Status AddNodes() {
    for (const RawNodes& nodes : graph_.nodes) {
      MILLRACE_ASSIGN_OR_RETURN(
          ImportedNodes imported,
          ImportNodes(nodes, options_.normalize_features, store_));
      const auto type = static_cast<TypeIndex>(times_.size());
      manifest_.books.emplace_back(
          std::vector<uint64_t>{0, static_cast<uint64_t>(imported.type.count)});
      manifest_.schema.node_types.push_back(std::move(imported.type));
      times_.push_back(std::move(imported.times));
      MILLRACE_RETURN_IF_ERROR(MakeSplits(type, imported));
    }
    return absl::OkStatus();
  }

  // `imported.type` is moved from.
  absl::Status MakeSplits(TypeIndex type, const ImportedNodes& imported) {
    const NodeType& nodes = manifest_.schema.node_types[type];
    if (!options_.makes_splits() || !nodes.label.present()) {
      return absl::OkStatus();
    }
    if (options_.folds == 0) return AddFractions(type, imported.labelled);
    MILLRACE_RETURN_IF_ERROR(
        CheckFolds(options_.folds,
                   static_cast<int64_t>(imported.labelled.size()), nodes.name));
    for (NamedSplit& split :
         SplitByFolds(imported.labelled, imported.classes, options_.folds,
                      options_.split_seed, type)) {
      MILLRACE_RETURN_IF_ERROR(
          AddSplit(type, split.name, std::move(split.ids)));
    }
    return absl::OkStatus();
  }

  absl::Status AddFractions(TypeIndex type,
                            const std::vector<int64_t>& labelled) {
    std::vector<std::vector<int64_t>> splits = SplitByFractions(
        labelled, options_.split_fractions, options_.split_seed, type);
    for (size_t i = 0; i < splits.size(); ++i) {
      MILLRACE_RETURN_IF_ERROR(
          AddSplit(type, kFractionNames[i], std::move(splits[i])));
    }
    return absl::OkStatus();
  }

  absl::Status AddRelations(const EdgeDivision& division) {
    const std::vector<bool> none;
    for (const bool reverse : {false, true}) {
      if (reverse && !options_.add_reverse) continue;
      for (size_t i = 0; i < graph_.edges.size(); ++i) {
        const bool divided = i == division.edges;
        const RelationImport import{
            graph_,   graph_.edges[i], reverse,
            options_, times_,          divided ? division.held_out : none};
        MILLRACE_ASSIGN_OR_RETURN(Relation relation,
                                  ImportRelation(import, store_));
        manifest_.schema.relations.push_back(std::move(relation));
      }
    }
    return absl::OkStatus();
  }

  // `ids`: ascending. In a dataset, ids are original ids.
  absl::Status AddSplit(TypeIndex type, const std::string& name,
                        std::vector<int64_t> ids) {
    const NodeType& nodes = manifest_.schema.node_types[type];
    const auto count = static_cast<int64_t>(ids.size());
    if (nodes.has_time) {
      std::vector<int64_t> times;
      for (const int64_t id : ids) times.push_back(times_[type][id]);
      MILLRACE_RETURN_IF_ERROR(store_.Write(SplitPath(nodes.name, name, "time"),
                                            Array::Adopt(std::move(times))));
    }
    const Array narrow =
        nodes.id_dtype() == DType::kUint32
            ? Array::Adopt(std::vector<uint32_t>(ids.begin(), ids.end()))
            : Array::Adopt(std::vector<uint64_t>(ids.begin(), ids.end()));
    MILLRACE_RETURN_IF_ERROR(
        store_.Write(SplitPath(nodes.name, name, "id"), narrow));
    MILLRACE_RETURN_IF_ERROR(
        store_.Write(SplitPath(nodes.name, name, "original_id"),
                     Array::Adopt(std::move(ids))));
    manifest_.splits.push_back({type, name, count, {count}});
    return absl::OkStatus();
  }

  const RawGraph& graph_;
  const ImportOptions& options_;
  StoreWriter& store_;
  Manifest manifest_;
  std::vector<std::vector<int64_t>> times_;  // per node type
};

// A reverse relation may not have the name of one of the user's.
absl::Status CheckReverseNames(const RawGraph& graph) {
  RawGraph all = graph;
  for (const RawEdges& edges : graph.edges) {
    RawEdges reverse = edges;
    std::swap(reverse.src, reverse.dst);
    reverse.name = StrCat("rev_", edges.name);
    all.edges.push_back(std::move(reverse));
  }
  return CheckNames(all);
}

absl::Status CheckOptions(const RawGraph& graph, const ImportOptions& options) {
  MILLRACE_RETURN_IF_ERROR(options.add_reverse ? CheckReverseNames(graph)
                                               : CheckNames(graph));
  if (!options.edge_split_fractions.empty()) {
    MILLRACE_RETURN_IF_ERROR(CheckEdgeDivision(graph, options));
  }
  if (!options.makes_splits()) return absl::OkStatus();
  if (!options.split_fractions.empty()) {
    if (options.folds != 0) {
      return absl::InvalidArgumentError(
          "--split-fractions and --folds exclude each other");
    }
    MILLRACE_RETURN_IF_ERROR(
        CheckFractions("--split-fractions", options.split_fractions));
  }
  const char* option = options.folds != 0 ? "--folds" : "--split-fractions";
  if (!graph.splits.empty()) {
    return absl::InvalidArgumentError(
        StrCat(option,
               ": this input has splits of its own; leave one of the two "
               "out"));
  }
  for (const RawNodes& nodes : graph.nodes) {
    if (nodes.label != nullptr) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat(
      option, " divides the labelled nodes, but this input has no labels"));
}

}  // namespace

absl::StatusOr<Manifest> ImportGraph(const RawGraph& graph,
                                     const ImportOptions& options,
                                     const std::filesystem::path& target) {
  MILLRACE_RETURN_IF_ERROR(CheckOptions(graph, options));
  MILLRACE_RETURN_IF_ERROR(CheckNodeCounts(graph));
  MILLRACE_ASSIGN_OR_RETURN(StoreWriter store, StoreWriter::Create(target));
  MILLRACE_ASSIGN_OR_RETURN(Manifest manifest,
                            Importer(graph, options, store).Run());
  MILLRACE_RETURN_IF_ERROR(store.Commit(manifest));
  return manifest;
}

}  // namespace millrace
