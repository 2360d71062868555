// SPDX-License-Identifier: Apache-2.0
// millrace inspect PATH [--json]
// Where only some partitions are on this host, shows what these tell.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "client/cli/label_json.h"
#include "common/base/bytes_text.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/edge_cut.h"
#include "common/graph/label_summary.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

Json DescribeColumn(const ColumnSpec& column) {
  if (!column.present()) return nullptr;
  return {{"dtype", std::string(DTypeName(column.dtype))},
          {"shape", column.row_shape}};
}

Json DescribeTime(ListTime time) {
  if (time == ListTime::kNone) return nullptr;
  return time == ListTime::kEdge ? "edge" : "neighbor";
}

Json DescribeTypes(const Schema& schema, const LabelSummaries& labels) {
  Json list = Json::array();
  for (size_t i = 0; i < labels.size(); ++i) {
    const NodeType& type = schema.node_types[i];
    Json label = DescribeColumn(type.label);
    if (labels[i].has_value()) label.update(LabelJson(*labels[i]));
    list.push_back({{"name", type.name},
                    {"count", type.count},
                    {"feature", DescribeColumn(type.feature)},
                    {"label", std::move(label)},
                    {"time", type.has_time},
                    {"hotness", type.has_hotness}});
  }
  return list;
}

Json DescribeRelations(const Schema& schema) {
  Json list = Json::array();
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    const Relation& relation = schema.relations[i];
    list.push_back(
        {{"name", schema.RelationName(static_cast<RelationIndex>(i))},
         {"edges", relation.edge_count},
         {"max_edge_id", relation.max_edge_id},
         {"in", relation.has_in},
         {"out", relation.has_out},
         {"weight", relation.has_weight},
         {"time", DescribeTime(relation.time)},
         {"type", relation.has_type},
         {"feature", DescribeColumn(relation.feature)}});
  }
  return list;
}

Json DescribeSplits(const Manifest& manifest) {
  Json list = Json::array();
  for (const SplitInfo& split : manifest.splits) {
    list.push_back({{"type", manifest.schema.node_types[split.type].name},
                    {"name", split.name},
                    {"count", split.count},
                    {"part_counts", split.part_counts}});
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    list.push_back({{"type", manifest.schema.RelationName(split.relation)},
                    {"name", split.name},
                    {"count", split.count},
                    {"part_counts", split.part_counts},
                    {"edge_id", split.has_edge_id},
                    {"time", split.has_time},
                    {"edge_type", split.has_edge_type},
                    {"label", DescribeColumn(split.label)},
                    {"negatives", split.negatives}});
  }
  return list;
}

// Bytes on disk: of all files, and of node and edge features.
struct Sizes {
  uint64_t all = 0;
  uint64_t features = 0;
};

Sizes SizesUnder(const Manifest& manifest, std::string_view prefix) {
  Sizes sizes;
  for (const FileInfo& file : manifest.files) {
    if (!file.path.starts_with(prefix)) continue;
    sizes.all += file.bytes;
    if (file.path.ends_with("/feature.npy")) sizes.features += file.bytes;
  }
  return sizes;
}

// Number of edges whose lists a partition holds: counts its in-lists, or its
// out-lists if it has no in-lists.
int64_t EdgesIn(const Partition& partition) {
  int64_t edges = 0;
  for (const EdgeColumns& columns : partition.edges) {
    edges += columns.in.present() ? columns.in.indices.rows()
                                  : columns.out.indices.rows();
  }
  return edges;
}

Json DescribePartitions(const Store& store) {
  Json list = Json::array();
  for (const int part : store.mapped_partitions()) {
    int64_t nodes = 0;
    for (const NodeColumns& columns : store.partition(part)->nodes) {
      nodes += columns.original_id.rows();
    }
    const Sizes sizes =
        SizesUnder(store.manifest(), StrCat(PartName(part), "/"));
    list.push_back({{"partition", part},
                    {"nodes", nodes},
                    {"edges", EdgesIn(*store.partition(part))},
                    {"bytes", sizes.all},
                    {"feature_bytes", sizes.features}});
  }
  return list;
}

// The largest partition divided by the mean; 1 is perfect.
double Balance(const Json& partitions, const char* what) {
  int64_t largest = 0;
  int64_t sum = 0;
  for (const Json& partition : partitions) {
    const int64_t value = partition[what].get<int64_t>();
    largest = std::max(largest, value);
    sum += value;
  }
  if (sum == 0) return 1;
  return static_cast<double>(largest) * static_cast<double>(partitions.size()) /
         static_cast<double>(sum);
}

absl::StatusOr<Json> DescribeCut(const Store& store) {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t cut, CountCutEdges(store));
  int64_t edges = 0;
  for (const Relation& relation : store.schema().relations) {
    edges += relation.edge_count;
  }
  const double fraction =
      edges == 0 ? 0 : static_cast<double>(cut) / static_cast<double>(edges);
  return Json{{"edges", cut}, {"fraction", fraction}};
}

// What all partitions together tell.
struct Whole {
  Json balance = nullptr;
  Json cut = nullptr;
};

// Its members are null if a partition is not on this host.
absl::StatusOr<Whole> DescribeWhole(const Store& store,
                                    const Json& partitions) {
  if (!store.is_whole()) return Whole();
  Whole whole;
  MILLRACE_ASSIGN_OR_RETURN(whole.cut, DescribeCut(store));
  whole.balance = {{"nodes", Balance(partitions, "nodes")},
                   {"edges", Balance(partitions, "edges")}};
  return whole;
}

absl::StatusOr<Json> Describe(const Store& store,
                              const LabelSummaries& labels) {
  const Manifest& manifest = store.manifest();
  const Sizes sizes = SizesUnder(manifest, "");
  const Json partitions = DescribePartitions(store);
  MILLRACE_ASSIGN_OR_RETURN(const Whole whole,
                            DescribeWhole(store, partitions));
  return Json{{"path", store.path().string()},
              {"version", manifest.version},
              {"uuid", manifest.uuid},
              {"fingerprint", manifest.fingerprint},
              {"dataset_fingerprint", manifest.dataset_fingerprint},
              {"parts", store.partition_count()},
              {"method", manifest.partitioning.method},
              {"seed", manifest.partitioning.seed},
              {"hot", manifest.partitioning.hot},
              {"node_types", DescribeTypes(manifest.schema, labels)},
              {"relations", DescribeRelations(manifest.schema)},
              {"splits", DescribeSplits(manifest)},
              {"bytes", sizes.all},
              {"feature_bytes", sizes.features},
              {"partitions", partitions},
              {"balance", whole.balance},
              {"edge_cut", whole.cut}};
}

// ", WHAT float32 [128]"; empty for an absent column.
std::string ColumnText(std::string_view what, const ColumnSpec& column) {
  if (!column.present()) return "";
  std::string text = StrCat(", ", what, " ", DTypeName(column.dtype));
  if (!column.row_shape.empty()) {
    text += StrCat(" [", absl::StrJoin(column.row_shape, ", "), "]");
  }
  return text;
}

void PrintSchema(const Store& store, const LabelSummaries& labels) {
  const Schema& schema = store.schema();
  std::cout << "node types\n";
  for (size_t i = 0; i < labels.size(); ++i) {
    const NodeType& type = schema.node_types[i];
    std::cout << "  " << type.name << ": " << type.count << " nodes"
              << ColumnText("feature", type.feature)
              << ColumnText("label", type.label)
              << (labels[i].has_value() ? ", " + LabelText(*labels[i]) : "")
              << (labels[i].has_value() && !store.is_whole() ? " here" : "")
              << (type.has_time ? ", time" : "")
              << (type.has_hotness ? ", hotness" : "") << "\n";
    if (labels[i].has_value() && labels[i]->sparse) {
      std::cout << "    note: " << SparseClassesText(*labels[i], type.name)
                << "\n";
    }
  }
  std::cout << "relations\n";
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    const Relation& relation = schema.relations[i];
    std::cout << "  " << schema.RelationName(static_cast<RelationIndex>(i))
              << ": " << relation.edge_count << " edges"
              << (relation.has_in ? ", in" : "")
              << (relation.has_out ? ", out" : "")
              << (relation.has_weight ? ", weight" : "")
              << (relation.time == ListTime::kEdge ? ", time of edges"
                  : relation.time == ListTime::kNeighbor
                      ? ", time of neighbours"
                      : "")
              << (relation.has_type ? ", type" : "")
              << ColumnText("feature", relation.feature) << "\n";
  }
}

void Print(const Store& store, const LabelSummaries& labels,
           const Json& report) {
  const Manifest& manifest = store.manifest();
  std::cout << store.path().string() << ": " << store.partition_count()
            << (store.partition_count() == 1 ? " partition" : " partitions")
            << ", " << BytesText(report["bytes"]) << " (features "
            << BytesText(report["feature_bytes"]) << ")\n"
            << "uuid " << manifest.uuid << "\nfingerprint "
            << manifest.fingerprint << "\ndataset fingerprint "
            << manifest.dataset_fingerprint << "\npartitioning "
            << manifest.partitioning.method << ", seed "
            << manifest.partitioning.seed
            << (manifest.partitioning.hot.empty() ? "" : ", hot ")
            << manifest.partitioning.hot << "\n";
  PrintSchema(store, labels);
  std::cout << "splits\n";
  for (const SplitInfo& split : manifest.splits) {
    std::cout << "  " << manifest.schema.node_types[split.type].name << " "
              << split.name << ": " << split.count << " seeds\n";
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    std::cout << "  " << manifest.schema.RelationName(split.relation) << " "
              << split.name << ": " << split.count << " seeds\n";
  }
  std::cout << "partitions";
  if (!store.is_whole()) {
    std::cout << " on this host (" << store.mapped_partitions().size() << " of "
              << store.partition_count() << ")";
  }
  std::cout << "\n";
  for (const Json& part : report["partitions"]) {
    std::cout << absl::StrFormat(
        "  %d: %d nodes, %d edges, %s\n", part["partition"].get<int>(),
        part["nodes"].get<int64_t>(), part["edges"].get<int64_t>(),
        BytesText(part["bytes"]));
  }
  if (!store.is_whole()) return;
  const Json& balance = report["balance"];
  const Json& cut = report["edge_cut"];
  std::cout << absl::StrFormat(
      "balance (largest / mean) nodes %.3f, edges %.3f\n"
      "edge cut %d edges, %.2f%%\n",
      balance["nodes"].get<double>(), balance["edges"].get<double>(),
      cut["edges"].get<int64_t>(), 100 * cut["fraction"].get<double>());
}

absl::Status Inspect(const std::string& path, bool json) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                            Store::OpenOnHost(path));
  MILLRACE_ASSIGN_OR_RETURN(const LabelSummaries labels,
                            SummarizeLabels(*store));
  MILLRACE_ASSIGN_OR_RETURN(const Json report, Describe(*store, labels));
  if (json) {
    std::cout << report.dump(2) << "\n";
  } else {
    Print(*store, labels, report);
  }
  return absl::OkStatus();
}

}  // namespace

void AddInspectCommand(CLI::App& app, CommandBody& body) {
  struct Options {
    std::string path;
    bool json = false;
  };
  CLI::App* command = app.add_subcommand(
      "inspect",
      "show what a dataset or store holds: schema, counts, sizes, "
      "splits, balance, edge cut");
  auto options = std::make_shared<Options>();  // lives as long as the options
  command->add_option("STORE", options->path, "dataset or store")->required();
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer("  millrace inspect cora-2");
  command->callback([options, &body] {
    body = [options] { return Inspect(options->path, options->json); };
  });
}

}  // namespace millrace
