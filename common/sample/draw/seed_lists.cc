// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/seed_lists.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

Array CopyOf(std::span<const int64_t> values) {
  return Array::Adopt(std::vector<int64_t>(values.begin(), values.end()));
}

// The trees of `count` nodes, `per_tree` in each tree from `first` on.
std::vector<uint32_t> TreesOf(size_t count, uint32_t first, uint32_t per_tree) {
  std::vector<uint32_t> trees(count);
  for (uint32_t i = 0; i < count; ++i) trees[i] = first + i / per_tree;
  return trees;
}

}  // namespace

std::vector<SeedList> SeedLists(const ResolvedJob& job, const Schema& schema,
                                const ResolvedSeeds& seeds) {
  using Role = SeedList::Role;
  std::vector<SeedList> lists;
  const auto add = [&](Role role, TypeIndex type, const ResolvedNodes& nodes,
                       uint32_t first_tree, uint32_t per_tree) {
    if (nodes.ids.empty() && role != Role::kSeed) return;
    SeedList& list = lists.emplace_back();
    list.role = role;
    list.type = type;
    list.ids = nodes.ids;
    if (job.spec.disjoint) {
      list.trees = TreesOf(nodes.size(), first_tree, per_tree);
    }
  };
  if (job.spec.seed_kind != SeedKind::kEdge) {
    add(Role::kSeed, job.seed_type, seeds, 0, 1);
    return lists;
  }
  const Relation& relation = schema.relations[job.seed_relation];
  const auto count = static_cast<uint32_t>(seeds.size());
  const bool pairs = job.spec.negatives.mode == NegativeMode::kBinary;
  const auto per_seed = static_cast<uint32_t>(
      pairs || count == 0 ? 1 : seeds.negative_dst.size() / count);
  const uint32_t first_tree = pairs ? count : 0;
  add(Role::kSeed, relation.src, seeds, 0, 1);
  add(Role::kDst, relation.dst, seeds.dst, 0, 1);
  add(Role::kNegativeSrc, relation.src, seeds.negative_src, first_tree, 1);
  // Shared negatives belong to no tree; their jobs are not disjoint.
  add(Role::kNegativeDst, relation.dst, seeds.negative_dst, first_tree,
      std::max<uint32_t>(per_seed, 1));
  return lists;
}

Batch BatchOfSeeds(const ResolvedJob& job, const ResolvedSeeds& seeds,
                   uint32_t epoch, uint32_t index) {
  Batch batch = Batch::For(job, epoch, index);
  batch.seed = CopyOf(seeds.original_ids);
  const bool edges = job.spec.seed_kind == SeedKind::kEdge;
  const bool temporal = job.spec.temporal != TemporalStrategy::kNone;
  if (temporal || (edges && !seeds.times.empty())) {
    batch.seed_time = CopyOf(seeds.times);
  }
  if (!edges) return batch;
  EdgeSeedBlock& block = batch.edge_seeds;
  block.dst = CopyOf(seeds.dst.original_ids);
  block.label = seeds.label;
  if (!seeds.edge_types.empty()) {
    block.edge_type = Array::Adopt(seeds.edge_types);
  }
  if (!seeds.negative_src.ids.empty()) {
    block.negative_src = CopyOf(seeds.negative_src.original_ids);
  }
  if (!seeds.negative_dst.ids.empty()) {
    block.negative_dst = CopyOf(seeds.negative_dst.original_ids);
  }
  if (DrawsNegatives(job.spec)) {
    block.false_negatives = Array::Adopt(std::vector{seeds.false_negatives});
  }
  return batch;
}

void SetSeedLocals(SeedList::Role role, Array locals, Batch& batch) {
  switch (role) {
    case SeedList::Role::kSeed:
      batch.seed_to_local = std::move(locals);
      break;
    case SeedList::Role::kDst:
      batch.edge_seeds.dst_local = std::move(locals);
      break;
    case SeedList::Role::kNegativeSrc:
      batch.edge_seeds.negative_src_local = std::move(locals);
      break;
    case SeedList::Role::kNegativeDst:
      batch.edge_seeds.negative_local = std::move(locals);
      break;
  }
}

}  // namespace millrace
