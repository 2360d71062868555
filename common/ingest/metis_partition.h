// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/ingest/assignment.h"

namespace millrace {

// METIS (Karypis and Kumar 1998) on the whole graph in memory: symmetrised,
// parallel edges merged into one weighted edge, self loops left out; all node
// types and relations are one joint graph. Balanced are the nodes of every
// type and the in-edges. Recursive bisection up to 8 parts, k-way above.
// Deterministic for a seed (its low 31 bits).
// Runs in a child process, so that METIS can be interrupted and cannot end the
// program; call it from a program without other threads.
// Memory: about 130 bytes an edge at the peak. A graph without edges, or with
// no more nodes than parts, is divided as AssignRandom does.
// FAILED_PRECONDITION: the graph is too large (CheckMetisSize).
// RESOURCE_EXHAUSTED: METIS had too little memory. CANCELLED. INTERNAL: METIS
// failed otherwise.
absl::StatusOr<Assignment> AssignMetis(const Store& dataset, int parts,
                                       uint64_t seed);

// METIS numbers vertices and adjacency entries (two an edge) with 32 bits.
// FAILED_PRECONDITION names the number, the limit and `--method ldg`.
absl::Status CheckMetisSize(uint64_t vertices, uint64_t edges);

}  // namespace millrace
