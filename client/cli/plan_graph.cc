// SPDX-License-Identifier: Apache-2.0
#include "client/cli/plan_graph.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"
#include "common/cli/words.h"
#include "common/file/file.h"
#include "common/graph/damaged_file.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

using GraphJson = nlohmann::json;

constexpr int64_t kMostNodes = int64_t{1} << 48;
constexpr uint64_t kMostReportBytes = uint64_t{1} << 30;

ColumnSpec ColumnOf(const GraphJson& column) {
  if (column.is_null()) return {};
  ColumnSpec spec;
  spec.dtype = DTypeFromName(column.at("dtype").get<std::string>())
                   .value_or(DType::kNone);
  spec.row_shape = column.at("shape").get<std::vector<int64_t>>();
  return spec;
}

NodeType NodeTypeOf(const GraphJson& json) {
  return {.name = json.at("name").get<std::string>(),
          .count = json.at("count").get<int64_t>(),
          .feature = ColumnOf(json.at("feature")),
          .label = ColumnOf(json.at("label")),
          .has_time = json.at("time").get<bool>(),
          .has_hotness = json.at("hotness").get<bool>()};
}

absl::StatusOr<Relation> RelationOf(const GraphJson& json,
                                    const Schema& schema) {
  MILLRACE_ASSIGN_OR_RETURN(
      const RelationNameParts parts,
      ParseRelationName(json.at("name").get<std::string>()));
  Relation relation;
  MILLRACE_ASSIGN_OR_RETURN(relation.src, schema.FindType(parts.src));
  MILLRACE_ASSIGN_OR_RETURN(relation.dst, schema.FindType(parts.dst));
  relation.name = parts.name;
  relation.edge_count = json.at("edges").get<int64_t>();
  relation.max_edge_id = json.at("max_edge_id").get<int64_t>();
  relation.has_in = json.at("in").get<bool>();
  relation.has_out = json.at("out").get<bool>();
  relation.has_weight = json.at("weight").get<bool>();
  const GraphJson& time = json.at("time");
  relation.time = time.is_null()       ? ListTime::kNone
                  : time == "neighbor" ? ListTime::kNeighbor
                                       : ListTime::kEdge;
  relation.has_type = json.at("type").get<bool>();
  relation.feature = ColumnOf(json.at("feature"));
  return relation;
}

// The splits of node types: they tell the type of a job's seeds.
void AddSplits(const GraphJson& splits, PlanGraph& graph) {
  for (const GraphJson& split : splits) {
    graph.seeds += split.at("count").get<int64_t>();
    const auto type =
        graph.manifest.schema.FindType(split.at("type").get<std::string>());
    if (!type.ok()) continue;
    SplitInfo& info = graph.manifest.splits.emplace_back();
    info.type = *type;
    info.name = split.at("name").get<std::string>();
    info.count = split.at("count").get<int64_t>();
  }
}

absl::StatusOr<int> PartitionCountOf(const GraphJson& report,
                                     const std::string& path) {
  const GraphJson& parts = report.at("parts");
  if (parts.is_number_integer() && parts >= 1 && parts <= kMaxPartitions) {
    return parts.get<int>();
  }
  return absl::InvalidArgumentError(
      StrCat(path, ": \"parts\" is ", parts.dump(), "; it must be 1 to ",
             kMaxPartitions, "\nmake it again with `millrace inspect --json`"));
}

absl::StatusOr<PlanGraph> ParseReport(const std::string& text,
                                      const std::string& path) {
  PlanGraph graph;
  try {
    const GraphJson json = GraphJson::parse(text);
    Schema& schema = graph.manifest.schema;
    for (const GraphJson& type : json.at("node_types")) {
      schema.node_types.push_back(NodeTypeOf(type));
    }
    for (const GraphJson& relation : json.at("relations")) {
      MILLRACE_ASSIGN_OR_RETURN(schema.relations.emplace_back(),
                                RelationOf(relation, schema));
    }
    graph.manifest.partitioning.method = json.at("method").get<std::string>();
    MILLRACE_ASSIGN_OR_RETURN(graph.partitions, PartitionCountOf(json, path));
    AddSplits(json.at("splits"), graph);
    MILLRACE_RETURN_IF_ERROR(ValidateSchema(schema));
  } catch (const GraphJson::exception& error) {
    return absl::InvalidArgumentError(
        StrCat(path, " is not what `millrace inspect --json` prints: ",
               std::string(error.what())));
  }
  return graph;
}

}  // namespace

double PlanGraph::nodes() const {
  double count = 0;
  for (const NodeType& type : manifest.schema.node_types) {
    count += static_cast<double>(type.count);
  }
  return count;
}

double PlanGraph::edges() const {
  double count = 0;
  for (const Relation& relation : manifest.schema.relations) {
    count += static_cast<double>(relation.edge_count);
  }
  return count;
}

StoreSize PlanGraph::SizeOf(int partitions) const {
  const bool exists = is_partitioned() && !manifest.files.empty() &&
                      partitions == this->partitions;
  if (!exists) return EstimateStoreSize(manifest.schema, partitions, seeds);
  StoreSize size;
  for (const FileInfo& file : manifest.files) {
    const auto bytes = static_cast<double>(file.bytes);
    if (!PartitionOfFile(file.path).has_value()) {
      size.split_bytes += bytes;
    } else if (file.path.ends_with("/feature.npy")) {
      size.feature_bytes += bytes;
    } else {
      size.graph_bytes += bytes;
    }
  }
  return size;
}

void PlanGraphFlags::AddTo(CLI::App& app) {
  app.add_option("STORE", store_,
                 "dataset or store, of which some batches are made to measure "
                 "them");
  CLI::App& group = *app.add_option_group("Graph, without STORE");
  group
      .add_option("--report", report_,
                  "file with what `millrace inspect --json` printed")
      ->type_name("FILE");
  group.add_option("--nodes", nodes_, "number of nodes")
      ->check(WholeNumber(1, kMostNodes));
  group.add_option("--edges", edges_, "number of edges, as stored")
      ->check(WholeNumber(0, kMostNodes));
  group.add_option("--features", features_, "feature values of a node")
      ->check(WholeNumber(0, kMaxRowValues));
  group.add_option("--edge-values", edge_values_, "feature values of an edge")
      ->check(WholeNumber(0, kMaxRowValues));
  group.add_flag("--edge-weights", weights_, "edges have weights");
  group.add_flag("--edge-times", times_, "edges have times");
  group.add_flag("--edge-types", types_, "edges have types");
  group
      .add_option("--seeds-in-splits", seeds_,
                  "seeds in all splits together; by default, all nodes")
      ->check(WholeNumber(0, kMostNodes));
  CLI::App& partition = *app.add_option_group("As `millrace partition` does");
  partition
      .add_option("--stored-dtype", dtype_,
                  "dtype of node features in the store (default: as in the "
                  "dataset, or float32)")
      ->check(OneOf({"float32", "float16", "bfloat16"}));
  partition
      .add_option("--directions", directions_, "lists to keep of a dataset")
      ->check(OneOf({"in", "out", "both"}));
}

absl::Status PlanGraphFlags::SetStored(Schema& schema) const {
  for (Relation& relation : schema.relations) {
    relation.has_in = directions_ != "out";
    relation.has_out = directions_ != "in";
  }
  if (dtype_.empty()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const DType dtype, DTypeFromName(dtype_));
  for (NodeType& type : schema.node_types) {
    if (type.feature.present()) type.feature.dtype = dtype;
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanGraph> PlanGraphFlags::FromNumbers() const {
  PlanGraph graph;
  NodeType node = {.name = std::string(kHomogeneousType), .count = nodes_};
  if (features_ > 0) node.feature = {DType::kFloat32, {features_}};
  node.label = {DType::kInt64, {}};
  node.has_hotness = true;
  Relation relation;
  relation.name = "to";
  relation.edge_count = edges_;
  relation.max_edge_id = edges_ - 1;
  relation.has_weight = weights_;
  relation.time = times_ ? ListTime::kEdge : ListTime::kNone;
  relation.has_type = types_;
  if (edge_values_ > 0) relation.feature = {DType::kFloat32, {edge_values_}};
  graph.manifest.schema = {{std::move(node)}, {std::move(relation)}};
  graph.seeds = seeds_ < 0 ? nodes_ : seeds_;
  MILLRACE_RETURN_IF_ERROR(SetStored(graph.manifest.schema));
  return graph;
}

absl::StatusOr<PlanGraph> PlanGraphFlags::FromReport() const {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(report_, kMostReportBytes));
  MILLRACE_ASSIGN_OR_RETURN(PlanGraph graph, ParseReport(text, report_));
  if (!graph.is_partitioned()) {
    MILLRACE_RETURN_IF_ERROR(SetStored(graph.manifest.schema));
  }
  return graph;
}

absl::StatusOr<PlanGraph> PlanGraphFlags::FromStore() const {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                            Store::OpenOnHost(store_));
  PlanGraph graph;
  graph.manifest = store->manifest();
  graph.partitions = store->partition_count();
  for (const SplitInfo& split : graph.manifest.splits) {
    graph.seeds += split.count;
  }
  for (const EdgeSplitInfo& split : graph.manifest.edge_splits) {
    graph.seeds += split.count;
  }
  if (store->is_whole()) graph.store = store_;
  if (!graph.is_partitioned()) {
    MILLRACE_RETURN_IF_ERROR(SetStored(graph.manifest.schema));
  }
  return graph;
}

absl::StatusOr<PlanGraph> PlanGraphFlags::Read() const {
  const int places = (store_.empty() ? 0 : 1) + (report_.empty() ? 0 : 1) +
                     (nodes_ == 0 ? 0 : 1);
  if (places != 1) {
    return UsageError(
        StrCat(places == 0 ? "nothing says how large the graph is"
                           : "the graph is described more than once",
               "\ngive either STORE, or --report, or --nodes and --edges"));
  }
  if (!store_.empty()) return FromStore();
  return report_.empty() ? FromNumbers() : FromReport();
}

}  // namespace millrace
