// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/importer.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/array.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/edge_split_writer.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"
#include "common/ingest/divide_edges.h"
#include "common/ingest/given_splits.h"
#include "common/ingest/graph_checks.h"
#include "common/ingest/node_counts.h"
#include "common/ingest/node_import.h"
#include "common/ingest/relation_import.h"
#include "common/ingest/select_edges.h"
#include "common/ingest/split_import.h"

namespace millrace {
namespace {

constexpr std::array<const char*, 3> kFractionNames = {"train", "valid",
                                                       "test"};

class Importer {
 public:
  Importer(const RawGraph& graph, const ImportOptions& options,
           StoreWriter& store)
      : graph_(graph), options_(options), store_(store) {}

  absl::StatusOr<Manifest> Run() {
    MILLRACE_ASSIGN_OR_RETURN(GivenSplits given, ReadGivenSplits(graph_));
    MILLRACE_RETURN_IF_ERROR(AddNodes());
    for (size_t i = 0; i < given.nodes.size(); ++i) {
      const RawSplit& split = graph_.splits[i];
      MILLRACE_RETURN_IF_ERROR(
          AddSplit(split.type, split.name, std::move(given.nodes[i])));
    }
    EdgeDivision division;
    if (!options_.edge_split_fractions.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(division, DivideEdges(graph_, options_));
    }
    MILLRACE_RETURN_IF_ERROR(AddRelations(division));
    for (size_t i = 0; i < given.edges.size(); ++i) {
      MILLRACE_RETURN_IF_ERROR(
          AddGivenEdges(graph_.edge_splits[i], std::move(given.edges[i])));
    }
    if (!options_.edge_split_fractions.empty()) {
      MILLRACE_RETURN_IF_ERROR(AddEdgeFractions(std::move(division)));
    }
    return std::move(manifest_);
  }

 private:
  absl::Status AddGivenEdges(const RawEdgeSplit& split,
                             EdgeSplitColumns columns) {
    if (split.ids == nullptr) {
      return AddEdgeSplit(split.edges, std::move(columns));
    }
    const auto ids = columns.edge_id.As<int64_t>();
    return AddSelected(
        split.edges, {{split.name, std::vector<int64_t>(ids.begin(), ids.end()),
                       split.ids}});
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

  // Does not use `imported.type`, which has been moved from.
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

  // `ids` must be ascending. In a dataset, ids are original ids.
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

absl::Status CheckOptions(const RawGraph& graph, const ImportOptions& options) {
  MILLRACE_RETURN_IF_ERROR(CheckGraphNames(graph, options));
  if (!options.edge_split_fractions.empty()) {
    MILLRACE_RETURN_IF_ERROR(CheckEdgeDivision(graph, options));
  }
  if (!options.makes_splits()) return absl::OkStatus();
  if (!options.split_fractions.empty()) {
    if (options.folds != 0) {
      return InvalidField({.problem = FieldError::Problem::kConflict,
                           .field = "split_fractions",
                           .other_field = "folds"});
    }
    MILLRACE_RETURN_IF_ERROR(
        CheckFractions("split_fractions", options.split_fractions));
  }
  const char* field = options.folds != 0 ? "folds" : "split_fractions";
  if (!graph.splits.empty()) {
    return WithAdvice(InvalidField({.field = field,
                                    .limit = "this input already has splits"}),
                      "leave one of the two out");
  }
  for (const RawNodes& nodes : graph.nodes) {
    if (nodes.label != nullptr) return absl::OkStatus();
  }
  return InvalidField(
      {.field = field,
       .limit = "labelled nodes are divided, but this input has no labels"});
}

}  // namespace

absl::StatusOr<Manifest> ImportGraph(const RawGraph& graph,
                                     const ImportOptions& options,
                                     const std::filesystem::path& target) {
  MILLRACE_RETURN_IF_ERROR(CheckOptions(graph, options));
  MILLRACE_RETURN_IF_ERROR(CheckRowCounts(graph));
  MILLRACE_RETURN_IF_ERROR(CheckNodeCounts(graph));
  MILLRACE_RETURN_IF_ERROR(CheckImportMemory(graph, options));
  MILLRACE_ASSIGN_OR_RETURN(StoreWriter store, StoreWriter::Create(target));
  MILLRACE_ASSIGN_OR_RETURN(Manifest manifest,
                            Importer(graph, options, store).Run());
  MILLRACE_RETURN_IF_ERROR(store.Commit(manifest));
  return manifest;
}

}  // namespace millrace
