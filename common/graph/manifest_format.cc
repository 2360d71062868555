// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/graph/manifest.h"
#include "common/graph/manifest_checksum.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

Json FormatColumn(const ColumnSpec& column) {
  if (!column.present()) return nullptr;
  return {{"dtype", DTypeName(column.dtype)}, {"shape", column.row_shape}};
}

Json FormatListTime(ListTime time) {
  if (time == ListTime::kNone) return nullptr;
  return time == ListTime::kEdge ? "edge" : "neighbor";
}

Json FormatType(const NodeType& type, const PartitionBook& book) {
  const auto offsets = book.offsets();
  return {{"name", type.name},
          {"count", type.count},
          {"offsets", std::vector<uint64_t>(offsets.begin(), offsets.end())},
          {"id_dtype", DTypeName(type.id_dtype())},
          {"feature", FormatColumn(type.feature)},
          {"label", FormatColumn(type.label)},
          {"time", type.has_time},
          {"hotness", type.has_hotness}};
}

Json FormatRelation(const Schema& schema, const Relation& relation) {
  return {{"src", schema.node_types[relation.src].name},
          {"name", relation.name},
          {"dst", schema.node_types[relation.dst].name},
          {"edges", relation.edge_count},
          {"max_edge_id", relation.max_edge_id},
          {"in", relation.has_in},
          {"out", relation.has_out},
          {"weight", relation.has_weight},
          {"time", FormatListTime(relation.time)},
          {"type", relation.has_type},
          {"feature", FormatColumn(relation.feature)}};
}

// Writes the members that node splits and edge splits have in common.
template <typename Split>
void FormatSeeds(const Split& split, Json& json) {
  json["name"] = split.name;
  json["count"] = split.count;
  json["part_counts"] = split.part_counts;
  if (split.identity.within_store) return;
  json["fingerprint"] = split.identity.fingerprint;
}

Json FormatSplit(const Schema& schema, const SplitInfo& split) {
  Json json = {{"type", schema.node_types[split.type].name}};
  FormatSeeds(split, json);
  return json;
}

Json FormatEdgeSplit(const Schema& schema, const EdgeSplitInfo& split) {
  Json json = {{"relation", schema.RelationName(split.relation)}};
  FormatSeeds(split, json);
  json["edge_id"] = split.has_edge_id;
  json["time"] = split.has_time;
  json["edge_type"] = split.has_edge_type;
  json["label"] = FormatColumn(split.label);
  json["negatives"] = split.negatives;
  return json;
}

Json FormatPartitioning(const PartitioningInfo& partitioning) {
  Json json = {{"method", partitioning.method},
               {"seed", partitioning.seed},
               {"hot", partitioning.hot}};
  if (partitioning.cut_edges >= 0) json["cut_edges"] = partitioning.cut_edges;
  return json;
}

}  // namespace

std::string FormatManifest(const Manifest& manifest) {
  const Schema& schema = manifest.schema;
  Json root = {{"format", kStoreFormat},
               {"version", kStoreVersion},
               {"sampling_version", manifest.sampling_version},
               {"uuid", manifest.uuid},
               {"fingerprint", manifest.fingerprint},
               {"dataset_fingerprint", manifest.dataset_fingerprint},
               {"parts", manifest.partition_count()},
               {"partitioning", FormatPartitioning(manifest.partitioning)},
               {"neighbor_original_ids", manifest.neighbor_original_ids}};
  Json& types = root["node_types"] = Json::array();
  for (size_t i = 0; i < schema.node_types.size(); ++i) {
    types.push_back(FormatType(schema.node_types[i], manifest.books[i]));
  }
  Json& relations = root["relations"] = Json::array();
  for (const Relation& relation : schema.relations) {
    relations.push_back(FormatRelation(schema, relation));
  }
  Json& splits = root["splits"] = Json::array();
  for (const SplitInfo& split : manifest.splits) {
    splits.push_back(FormatSplit(schema, split));
  }
  Json& edge_splits = root["edge_splits"] = Json::array();
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    edge_splits.push_back(FormatEdgeSplit(schema, split));
  }
  Json& files = root["files"] = Json::array();
  for (const FileInfo& file : manifest.files) {
    files.push_back({{"path", file.path},
                     {"bytes", file.bytes},
                     {"xxh3", Hex16(file.xxh3)}});
  }
  root["checksum"] = kNoChecksum;
  return AddChecksum(root.dump(1) + "\n");
}

}  // namespace millrace
