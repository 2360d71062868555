// SPDX-License-Identifier: Apache-2.0
#include "client/cli/batch_json.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/float16.h"

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

// Nested lists; NaN becomes null.
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

Json EdgesJson(const Batch& batch, const Relation& relation,
               const EdgeBlock& block) {
  EdgePlaces places = PlacesOfEdges(batch, relation, block);
  const bool in = batch.direction == Direction::kIn;
  Json edges;
  edges["hop"] = std::vector<int>(places.hop.begin(), places.hop.end());
  edges["src"] = in ? ArrayJson(block.neighbor) : Json(places.owner);
  edges["dst"] = in ? Json(places.owner) : ArrayJson(block.neighbor);
  edges["edge_id"] = ArrayJson(block.edge_id);
  if (block.visits.present()) edges["visits"] = ArrayJson(block.visits);
  if (block.feature.present()) edges["x"] = ArrayJson(block.feature);
  return edges;
}

}  // namespace

nlohmann::ordered_json BatchJson(const Batch& batch, const Schema& schema,
                                 bool with_features) {
  Json json;
  json["epoch"] = batch.epoch;
  json["batch"] = batch.index;
  json["seeds"]["type"] = schema.node_types[batch.seed_type].name;
  json["seeds"]["ids"] = ArrayJson(batch.seed);
  if (batch.seed_time.present()) {
    json["seeds"]["time"] = ArrayJson(batch.seed_time);
  }
  json["seed_to_local"] = ArrayJson(batch.seed_to_local);
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    const std::string& name = schema.node_types[t].name;
    const NodeBlock& block = batch.nodes[t];
    json["nodes"][name] = ArrayJson(block.original_id);
    if (batch.disjoint) json["trees"][name] = ArrayJson(block.tree);
  }
  json["edges"] = Json::object();
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    json["edges"][schema.RelationName(static_cast<int>(r))] =
        EdgesJson(batch, schema.relations[r], batch.edges[r]);
  }
  if (batch.walks.present()) json["walks"] = ArrayJson(batch.walks);
  if (!with_features) return json;
  json["x"] = Json::object();
  json["y"] = Json::object();
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    const std::string& name = schema.node_types[t].name;
    const NodeBlock& block = batch.nodes[t];
    if (block.feature.present()) json["x"][name] = ArrayJson(block.feature);
    if (block.label.present()) json["y"][name] = ArrayJson(block.label);
  }
  return json;
}

}  // namespace millrace
