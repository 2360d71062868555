// SPDX-License-Identifier: Apache-2.0
// The nodes that a batch starts from, for all that number its nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/array.h"
#include "common/graph/schema.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"

namespace millrace {

// Nodes of one type that are numbered one after another.
struct SeedList {
  enum class Role : uint8_t {
    kSeed,  // or the sources of edge seeds
    kDst,
    kNegativeSrc,
    kNegativeDst,
  };
  Role role = Role::kSeed;
  TypeIndex type = 0;
  std::span<const uint64_t> ids;
  std::vector<uint32_t> trees;  // parallel to ids; empty unless disjoint
};

// The lists of a batch's seeds, in the order in which they are numbered
// (docs/determinism.md, section 5). Lists of ids are views of `seeds`, and
// those without ids are left out, except for the first.
std::vector<SeedList> SeedLists(const ResolvedJob& job, const Schema& schema,
                                const ResolvedSeeds& seeds);

// Returns a batch of `job` that has everything that is known about its seeds
// before they are numbered, and no blocks.
Batch BatchOfSeeds(const ResolvedJob& job, const ResolvedSeeds& seeds,
                   uint32_t epoch, uint32_t index);

// Sets the local ids (uint32) of a list in a batch.
void SetSeedLocals(SeedList::Role role, Array locals, Batch& batch);

}  // namespace millrace
