// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Parameters of a random graph that a model can learn. Equal parameters give
// the same graph on any machine. Node v has class v mod `classes`. There are
// round(nodes * average_degree) edges; about half of them join nodes of the
// same class, the others any two nodes. Feature j is uniform in [-1, 1), plus
// 1/2 if j mod `classes` is the node's class.
struct FakeInput {
  int64_t nodes = 0;
  double average_degree = 0;
  int64_t features = 0;
  int64_t classes = 2;
  uint64_t seed = 1;
};

// Makes the graph; its rows are computed when they are read.
// INVALID_ARGUMENT: a number is out of range (FieldError).
absl::StatusOr<RawGraph> MakeFake(const FakeInput& input);

}  // namespace millrace
