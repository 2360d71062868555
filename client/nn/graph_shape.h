// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/schema.h"

namespace millrace {

// What a model knows of the graph it is made for. A homogeneous graph is the
// case of one node type and one relation.
struct GraphShape {
  struct Type {
    std::string name;
    int64_t count = 0;     // nodes
    int64_t features = 0;  // columns; 0: none
    TypeIndex number = 0;  // in batches
  };
  // Messages go from the neighbours' type to the type that lists them: with
  // Direction::kOut that is against the edges.
  struct Relation {
    std::string name;  // SRC__REL__DST, in the direction of the edges
    TypeIndex neighbors = 0;
    TypeIndex lists = 0;
    RelationIndex number = 0;  // in batches
    int64_t features = 0;      // columns of the edges'; 0: none
  };

  std::vector<Type> types;
  std::vector<Relation> relations;
  // The type whose rows the model computes: the seeds' (of edge seeds the
  // destinations'), or that of the nodes whose rows a graph's are added up
  // from.
  TypeIndex seed_type = 0;
  // Edge seeds: the type of the sources, whose rows are computed too.
  std::optional<TypeIndex> source_type = {};
  // Graph seeds: number of the relation that lists the nodes of a graph; -1:
  // node seeds.
  RelationIndex members = -1;

  bool homogeneous() const {
    return types.size() == 1 && relations.size() == 1;
  }

  // Whether rows of the type are what the model is for.
  bool IsOutput(TypeIndex type) const {
    return type == seed_type || type == source_type;
  }
  // [1 + layer][type]: whether layer i of a model must compute rows of the
  // type, so that the last layer has the output types; -1: whether layer 0
  // reads them.
  std::vector<std::vector<bool>> NeededTypes(int layers) const;

  static GraphShape Homogeneous(int64_t features);
  // Types and relations keep their places.
  static GraphShape Of(const Schema& schema, TypeIndex seed_type,
                       Direction direction);
  static GraphShape OfEdges(const Schema& schema, RelationIndex relation,
                            Direction direction);
  // Of the small graphs that are the nodes of a type: without that type.
  // UNIMPLEMENTED: their nodes are of several types.
  static absl::StatusOr<GraphShape> OfGraphs(const Schema& schema,
                                             TypeIndex graph_type);
};

}  // namespace millrace
