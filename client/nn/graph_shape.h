// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/schema.h"

namespace millrace {

// What a model needs to know about its graph. A homogeneous graph has one node
// type and one relation.
struct GraphShape {
  struct Type {
    std::string name;
    int64_t count = 0;     // nodes
    int64_t features = 0;  // number of columns; 0 if none
    TypeIndex number = 0;  // its index in batches
  };
  // Messages flow from the neighbours' type to the type that owns the lists;
  // with Direction::kOut that is against the direction of the edges.
  struct Relation {
    std::string name;  // SRC__NAME__DST, in the direction of the edges
    TypeIndex neighbors = 0;
    TypeIndex lists = 0;
    RelationIndex number = 0;  // its index in batches
    int64_t features = 0;      // columns of edge features; 0 if none
  };

  std::vector<Type> types;
  std::vector<Relation> relations;
  // The type whose rows the model computes: that of the seeds (for edge seeds,
  // of the destinations), or for graph seeds that of the graphs' nodes.
  TypeIndex seed_type = 0;
  // Edge seeds: the type of the sources, whose rows are computed as well.
  std::optional<TypeIndex> source_type = {};
  // Graph seeds: index of the relation that lists the nodes of a graph; -1 for
  // other seeds.
  RelationIndex members = -1;

  bool homogeneous() const {
    return types.size() == 1 && relations.size() == 1;
  }

  // Whether the model's output contains rows of the type.
  bool IsOutput(TypeIndex type) const {
    return type == seed_type || type == source_type;
  }
  // [1 + layer][type]: whether layer i of a model must compute rows of the
  // type, so that the last layer yields the output types; index 0 (layer -1):
  // whether layer 0 reads them.
  std::vector<std::vector<bool>> NeededTypes(int layers) const;

  static GraphShape Homogeneous(int64_t features);
  // Types and relations keep their indices.
  static GraphShape Of(const Schema& schema, TypeIndex seed_type,
                       Direction direction);
  static GraphShape OfEdges(const Schema& schema, RelationIndex relation,
                            Direction direction);
  // Shape of the small graphs that are the nodes of `graph_type`; excludes that
  // type. UNIMPLEMENTED: their nodes are of several types.
  static absl::StatusOr<GraphShape> OfGraphs(const Schema& schema,
                                             TypeIndex graph_type);
};

}  // namespace millrace
