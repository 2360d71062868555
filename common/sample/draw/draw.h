// SPDX-License-Identifier: Apache-2.0
// Random draws, as docs/determinism.md specifies them in sections 2 to 4.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/random/philox.h"
#include "common/sample/draw/draw_domain.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// The permutation P(K, n) of section 4, a Feistel network. Immutable; any
// thread may use it.
class Permutation {
 public:
  Permutation(PhiloxKey key, uint64_t size);  // size >= 1
  uint64_t operator()(uint64_t position) const;

 private:
  PhiloxKey key_;
  uint64_t size_;
  int half_bits_;
};

// Draws from the lists of partition `part`, which must be mapped (section 3),
// and appends to `picks`. Any thread may call it.
// INVALID_ARGUMENT: an id of `frontier` that `part` does not own. DATA_LOSS: a
// list that leaves its file, or a neighbour out of range. FAILED_PRECONDITION:
// the lists lack a column that the rule reads. Also the errors of
// frontier.poller. After an error, `picks` must not be used.
absl::Status DrawNeighbors(const Store& store, int part,
                           const DrawContext& context, const Frontier& frontier,
                           Picks& picks);

}  // namespace millrace
