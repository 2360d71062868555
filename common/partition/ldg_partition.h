// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/partition/assignment.h"

namespace millrace {

// A partition gets at most an equal share of the nodes of a type, times this
// and rounded up. The same limit is applied to in-edges as far as the degrees
// of single nodes and the limit on nodes allow.
inline constexpr double kLdgSlack = 1.05;

// Linear Deterministic Greedy (Stanton and Kliot 2012): nodes are visited in id
// order (types interleaved in proportion), and each is placed where
//     neighbours already there * (1 - load / capacity)
// is largest. The load is that of nodes or of in-edges, whichever is closer to
// its capacity, which grows with what has been placed; ties go to the emptier
// partition. Neighbours are those in the lists of the dataset, in both
// directions if it has both.
// Needs 2 bytes of memory per node, plus the in-degrees if the dataset has no
// in-lists; edges are streamed. Deterministic; there is no seed.
// DATA_LOSS: damaged lists. CANCELLED: interrupted.
absl::StatusOr<Assignment> AssignLdg(const Store& dataset, int parts);

}  // namespace millrace
