// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/partition/assignment.h"

namespace millrace {

// METIS (Karypis and Kumar 1998) on the whole graph in memory. The graph is
// symmetrised, parallel edges are merged into one weighted edge, and self loops
// are left out; all node types and relations form one graph. Balances the nodes
// of every type and the in-edges. Uses recursive bisection for up to 8 parts,
// k-way partitioning for more. Deterministic for a seed, of which it uses the
// low 31 bits.
// Runs in a child process, so that METIS can be interrupted and cannot end the
// program; call it only while there are no other threads.
// Memory: about 130 bytes per edge at the peak. A graph without edges, or with
// no more nodes than parts, is divided by AssignRandom().
// FAILED_PRECONDITION: the graph is too large (CheckMetisSize).
// RESOURCE_EXHAUSTED: METIS ran out of memory. CANCELLED: interrupted.
// INTERNAL: METIS failed for another reason.
absl::StatusOr<Assignment> AssignMetis(const Store& dataset, int parts,
                                       uint64_t seed);

// METIS numbers vertices and adjacency entries (two per edge) with 32 bits.
// FAILED_PRECONDITION: too many; the message names the number, the limit and
// `--method ldg`.
absl::Status CheckMetisSize(uint64_t vertices, uint64_t edges);

}  // namespace millrace
