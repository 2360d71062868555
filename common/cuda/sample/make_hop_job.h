// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/cuda/sample/hop_job.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/draw_rule.h"
#include "common/sample/job.h"
#include "common/sample/topology_sampler.h"

namespace millrace::cuda {

// Returns what HopSampler takes for a batch of `job`, whose method must have
// kernels. `lists` are those of the job's direction, by relation.
inline HopJob MakeHopJob(const ResolvedJob& job, const Manifest& manifest,
                         const std::vector<Lists>& lists,
                         const TopologyRequest& request) {
  HopJob made;
  for (const PartitionBook& book : manifest.books) {
    made.node_counts.push_back(book.node_count());
  }
  const Direction direction = job.spec.direction;
  for (size_t r = 0; r < manifest.schema.relations.size(); ++r) {
    const Relation& relation = manifest.schema.relations[r];
    made.relations.push_back(
        {.list_type = ListOwnerType(relation, direction),
         .neighbor_type = NeighborType(relation, direction),
         .lists = lists[r],
         .fanouts = job.fanouts[r],
         .feature_rows = request.feature_rows && relation.feature.present()});
  }
  made.hops = job.hops;
  made.rule = RuleOf(job.spec);
  made.replace = job.spec.replace;
  made.disjoint = job.spec.disjoint;
  made.edge_ids = request.edge_ids;
  made.job_seed = job.spec.seed;
  made.epoch = request.epoch;
  made.batch = request.batch;
  return made;
}

}  // namespace millrace::cuda
