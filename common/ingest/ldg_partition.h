// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/ingest/assignment.h"

namespace millrace {

// No partition gets more than this times its share of the nodes of a type,
// rounded up. Its share of the in-edges is held to the same, as far as single
// nodes and the limit on nodes allow.
inline constexpr double kLdgSlack = 1.05;

// Linear Deterministic Greedy (Stanton and Kliot 2012): nodes are taken in id
// order (types interleaved in proportion) and each goes where
//     neighbours already there * (1 - load / capacity)
// is largest. The load is that of nodes or of in-edges, whichever is fuller,
// against a capacity that grows with what was placed; ties go to the emptier
// partition. Neighbours are those of the lists the dataset has, in both
// directions where it has both.
// Memory: 2 bytes a node, plus the in-degrees where the dataset has no
// in-lists; edges stream. Deterministic, without a seed.
// DATA_LOSS: damaged lists. CANCELLED.
absl::StatusOr<Assignment> AssignLdg(const Store& dataset, int parts);

}  // namespace millrace
