// SPDX-License-Identifier: Apache-2.0
// Finds out which owners to ask for the rows of a batch that its home does not
// send.
#pragma once

#include <vector>

#include "client/remote/feature_cache.h"
#include "client/remote/row_call.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/batch_source.h"

namespace millrace {

// Where the rows of a batch come from. All must outlive it.
struct RowOrigins {
  const Manifest& manifest;
  const Columns& columns;
  int home;  // partition that sends its own rows
  // Feature rows that are here; null if there are none.
  const CachedFeatures* cache;
};

// Returns requests for the rows of all columns of a node type that are neither
// the home's nor in the cache, to be written to their positions in `batch`,
// whose topology is complete.
std::vector<RowRequest> MissingNodeRows(const RowOrigins& origins,
                                        const Batch& batch, TypeIndex type);

// The same for the edge features of a relation.
std::vector<RowRequest> MissingEdgeRows(const RowOrigins& origins,
                                        const Batch& batch,
                                        RelationIndex relation);

}  // namespace millrace
