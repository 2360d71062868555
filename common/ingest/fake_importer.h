// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// A graph that a model can learn, made of random numbers: the same for the
// same values, on any machine. Node v has the class v mod `classes`; half of
// the edges (round(nodes * average_degree) of them) join nodes of one class,
// the others any two. Feature j is uniform in [-1, 1), plus 1/2 where j mod
// `classes` is the node's class.
struct FakeInput {
  int64_t nodes = 0;
  double average_degree = 0;
  int64_t features = 0;
  int64_t classes = 2;
  uint64_t seed = 1;
};

// Nothing is held in memory: rows are computed when they are read.
// INVALID_ARGUMENT (starting with "--"): a number out of range.
absl::StatusOr<RawGraph> DescribeFake(const FakeInput& input);

}  // namespace millrace
