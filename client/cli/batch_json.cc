// SPDX-License-Identifier: Apache-2.0
#include "client/cli/batch_json.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/float16.h"
#include "common/sample/batch_arrays.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

double ElementAt(const Array& array, size_t i) {
  const std::byte* at = array.data() + i * ItemBytes(array.dtype());
  uint16_t half = 0;
  switch (array.dtype()) {
    case DType::kFloat32:
      return *reinterpret_cast<const float*>(at);
    case DType::kFloat64:
      return *reinterpret_cast<const double*>(at);
    case DType::kFloat16:
      std::memcpy(&half, at, sizeof(half));
      return FromFloat16(half);
    case DType::kBFloat16:
      std::memcpy(&half, at, sizeof(half));
      return FromBFloat16(half);
    default:
      return static_cast<double>(array.IntegerAt(static_cast<int64_t>(i)));
  }
}

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64 || dtype == DType::kBFloat16;
}

// The rows as nested lists; NaN becomes null.
Json ArrayJson(const Array& array) {
  const size_t width =
      array.rows() == 0
          ? 0
          : static_cast<size_t>(array.element_count() / array.rows());
  const auto value = [&](size_t i) -> Json {
    if (IsFloat(array.dtype())) return ElementAt(array, i);
    return array.IntegerAt(static_cast<int64_t>(i));
  };
  Json rows = Json::array();
  for (size_t row = 0; row < static_cast<size_t>(array.rows()); ++row) {
    if (array.shape().size() == 1) {
      rows.push_back(value(row));
      continue;
    }
    Json columns = Json::array();
    for (size_t c = 0; c < width; ++c) {
      columns.push_back(value(row * width + c));
    }
    rows.push_back(std::move(columns));
  }
  return rows;
}

// Calls `add` with the key and the JSON of each array that has a key. Member
// says whose arrays: those of the batch, or those of the node type or relation
// `index`.
template <typename Member, typename Add>
void ForEachArray(const Batch& batch, int index, Add add) {
  for (const BatchArray& array : BatchArrays()) {
    if (array.json.empty() || !std::holds_alternative<Member>(array.member)) {
      continue;
    }
    const Array values = array.Get(batch, index);
    if (values.present()) add(std::string(array.json), ArrayJson(values));
  }
}

Json EdgesJson(const Batch& batch, const Schema& schema, int relation) {
  const EdgeBlock& block = batch.edges[relation];
  const EdgePlaces places =
      PlacesOfEdges(batch, schema.relations[relation], block);
  const bool in = batch.direction == Direction::kIn;
  Json edges;
  edges["hop"] = std::vector<int>(places.hop.begin(), places.hop.end());
  edges["src"] = in ? ArrayJson(block.neighbor) : Json(places.owner);
  edges["dst"] = in ? Json(places.owner) : ArrayJson(block.neighbor);
  ForEachArray<Array EdgeBlock::*>(batch, relation,
                                   [&](const std::string& key, Json values) {
                                     edges[key] = std::move(values);
                                   });
  return edges;
}

// The rows of `a` followed by those of `b`.
Json Joined(const Array& a, const Array& b) {
  Json all = ArrayJson(a);
  if (!b.present()) return all;
  for (Json& value : ArrayJson(b)) all.push_back(std::move(value));
  return all;
}

// Drawn pairs (--negatives binary) follow the seeds and have label 0, as in
// PyG; the seeds have label 1 unless they have labels of their own.
Json LabelsJson(const Batch& batch) {
  const EdgeSeedBlock& pairs = batch.edge_seeds;
  Json labels = Json::array();
  if (pairs.label.present()) {
    labels = ArrayJson(pairs.label);
  } else if (pairs.negative_src.present()) {
    labels = std::vector<int>(static_cast<size_t>(batch.seed_count()), 1);
  }
  for (int64_t i = 0; i < pairs.negative_src.rows(); ++i) labels.push_back(0);
  return labels;
}

void AddEdgeSeeds(const Batch& batch, const Schema& schema, Json& json) {
  const EdgeSeedBlock& pairs = batch.edge_seeds;
  const bool drawn_pairs = pairs.negative_src.present();
  Json& seeds = json["seeds"];
  seeds["type"] = schema.RelationName(pairs.relation);
  seeds["src"] = Joined(batch.seed, pairs.negative_src);
  seeds["dst"] = Joined(pairs.dst, drawn_pairs ? pairs.negative_dst : Array());
  seeds["label"] = LabelsJson(batch);
  seeds["time"] =
      batch.seed_time.present() ? ArrayJson(batch.seed_time) : Json::array();
  if (pairs.edge_type.present()) {
    seeds["edge_type"] = ArrayJson(pairs.edge_type);
  }
  seeds["neg"] = drawn_pairs || !pairs.negative_dst.present()
                     ? Json::array()
                     : ArrayJson(pairs.negative_dst);
  Json rows = Json::array();
  rows.push_back(Joined(batch.seed_to_local, pairs.negative_src_local));
  rows.push_back(
      Joined(pairs.dst_local, drawn_pairs ? pairs.negative_local : Array()));
  if (!drawn_pairs && pairs.negative_local.present()) {
    rows.push_back(ArrayJson(pairs.negative_local));
  }
  json["seed_to_local"] = std::move(rows);
  if (pairs.false_negatives.present()) {
    json["false_negatives"] = pairs.false_negatives.IntegerAt(0);
  }
}

// Maps each node of the types that belong to graphs to the row of its graph; -1
// if the graph is not in the batch.
Json GraphOf(const Batch& batch, const Schema& schema) {
  std::map<TypeIndex, std::vector<int64_t>> rows;
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    const Relation& relation = schema.relations[r];
    if (relation.dst != batch.seed_type) continue;
    std::vector<int64_t>& of = rows[relation.src];
    of.resize(batch.nodes[relation.src].count(), -1);
    const EdgePlaces places = PlacesOfEdges(batch, relation, batch.edges[r]);
    for (size_t e = 0; e < places.owner.size(); ++e) {
      of[batch.edges[r].neighbor.As<uint32_t>()[e]] = places.owner[e];
    }
  }
  Json graph_of = Json::object();
  for (const auto& [type, of] : rows) {
    graph_of[schema.node_types[type].name] = of;
  }
  return graph_of;
}

void AddSeeds(const Batch& batch, const Schema& schema, Json& json) {
  if (batch.seed_kind == SeedKind::kEdge) {
    return AddEdgeSeeds(batch, schema, json);
  }
  const bool graphs = batch.seed_kind == SeedKind::kGraph;
  json["seeds"]["type"] = schema.node_types[batch.seed_type].name;
  json["seeds"][graphs ? "graphs" : "ids"] = ArrayJson(batch.seed);
  if (batch.seed_time.present()) {
    json["seeds"]["time"] = ArrayJson(batch.seed_time);
  }
  json["seed_to_local"] = ArrayJson(batch.seed_to_local);
  if (graphs) json["graph_of"] = GraphOf(batch, schema);
}

}  // namespace

nlohmann::ordered_json BatchJson(const Batch& batch, const Schema& schema,
                                 bool with_features) {
  Json json;
  json["epoch"] = batch.epoch;
  json["batch"] = batch.index;
  AddSeeds(batch, schema, json);
  json["nodes"] = Json::object();
  if (batch.disjoint) json["trees"] = Json::object();
  json["edges"] = Json::object();
  for (int r = 0; r < static_cast<int>(batch.edges.size()); ++r) {
    json["edges"][schema.RelationName(r)] = EdgesJson(batch, schema, r);
  }
  ForEachArray<Array Batch::*>(batch, 0,
                               [&](const std::string& key, Json values) {
                                 json[key] = std::move(values);
                               });
  if (with_features) {
    json["x"] = Json::object();
    json["y"] = Json::object();
  }
  for (int t = 0; t < static_cast<int>(batch.nodes.size()); ++t) {
    const std::string& name = schema.node_types[t].name;
    ForEachArray<Array NodeBlock::*>(
        batch, t, [&](const std::string& key, Json values) {
          if (with_features || (key != "x" && key != "y")) {
            json[key][name] = std::move(values);
          }
        });
  }
  return json;
}

}  // namespace millrace
