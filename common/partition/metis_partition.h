// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/partition/assignment.h"

namespace millrace {

// Runs METIS (Karypis and Kumar 1998) on the whole graph in memory. The graph
// is symmetrised, parallel edges are merged into one weighted edge, and self
// loops are left out; all node types and relations form one graph. Balances the
// nodes of every type and the in-edges. Uses recursive bisection for up to 8
// parts, and k-way partitioning for more. Deterministic for a given seed, of
// which only the low 31 bits are used.
// METIS runs in a child process, so that it can be interrupted and cannot end
// the program; call this only while there are no other threads.
// Needs about 130 bytes of memory per edge at the peak. A graph without edges,
// or with no more nodes than parts, is divided by AssignRandom().
// FAILED_PRECONDITION: the graph is too large (CheckMetisSize).
// RESOURCE_EXHAUSTED: too little memory. DATA_LOSS: damaged lists. CANCELLED:
// interrupted. INTERNAL: METIS failed for another reason.
absl::StatusOr<Assignment> AssignMetis(const Store& dataset, int parts,
                                       uint64_t seed);

// FAILED_PRECONDITION: too many vertices or adjacency entries (two per edge),
// which METIS numbers with 32 bits; the message names the number, the limit and
// `--method ldg`.
absl::Status CheckMetisSize(uint64_t vertices, uint64_t edges);

}  // namespace millrace
