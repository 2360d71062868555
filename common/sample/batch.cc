// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch.h"

namespace millrace {

size_t Batch::total_bytes() const {
  size_t bytes = seed.total_bytes() + seed_to_local.total_bytes();
  for (const NodeBlock& block : nodes) {
    for (const Array* array : {&block.id, &block.tree, &block.original_id,
                               &block.degree, &block.feature, &block.label}) {
      bytes += array->total_bytes();
    }
  }
  for (const EdgeBlock& block : edges) {
    for (const Array* array :
         {&block.indptr, &block.neighbor, &block.edge_id, &block.feature}) {
      bytes += array->total_bytes();
    }
  }
  return bytes;
}

}  // namespace millrace
