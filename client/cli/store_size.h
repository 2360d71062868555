// SPDX-License-Identifier: Apache-2.0
// How many bytes the files of a store take (docs/format.md, section 2), for
// graphs that need not exist yet.
#pragma once

#include <cstdint>

#include "common/graph/schema.h"

namespace millrace {

struct StoreSize {
  double graph_bytes = 0;    // of all partitions: everything but features
  double feature_bytes = 0;  // of all partitions: of nodes and edges
  double split_bytes = 0;    // which every host has

  double partition_bytes() const { return graph_bytes + feature_bytes; }
};

// What the files of a store of `parts` partitions take, with seeds in its
// splits as many as `seeds`. `parts` may be 1; a dataset, which lacks some of
// these files, is a little smaller.
StoreSize EstimateStoreSize(const Schema& schema, int parts, int64_t seeds);

}  // namespace millrace
