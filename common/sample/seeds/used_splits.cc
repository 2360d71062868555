// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/used_splits.h"

#include <utility>

namespace millrace {

std::vector<UsedSplit> SplitsOfTrainGraph(std::string_view name,
                                          const Manifest& manifest) {
  std::vector<UsedSplit> used;
  for (const SplitInfo& split : manifest.splits) {
    const std::string& fingerprint = split.identity.fingerprint;
    if (name.empty() || split.name != name || fingerprint.empty()) continue;
    used.push_back(
        {manifest.schema.node_types[split.type].name, split.name, fingerprint});
  }
  return used;
}

std::vector<UsedSplit> SplitsOfJob(const ResolvedJob& job,
                                   const Manifest& manifest,
                                   bool explicit_seeds) {
  std::vector<UsedSplit> used =
      SplitsOfTrainGraph(job.spec.train_graph, manifest);
  if (explicit_seeds) return used;
  const Schema& schema = manifest.schema;
  UsedSplit seeds;
  seeds.name = job.spec.split;
  if (job.seed_relation >= 0) {
    const auto place = manifest.FindEdgeSplit(job.seed_relation, seeds.name);
    if (!place.ok()) return used;
    seeds.type = schema.RelationName(job.seed_relation);
    seeds.fingerprint = manifest.edge_splits[*place].identity.fingerprint;
  } else {
    const auto place = manifest.FindSplit(job.seed_type, seeds.name);
    if (!place.ok()) return used;
    seeds.type = schema.node_types[job.seed_type].name;
    seeds.fingerprint = manifest.splits[*place].identity.fingerprint;
  }
  if (!seeds.fingerprint.empty()) used.push_back(std::move(seeds));
  return used;
}

}  // namespace millrace
