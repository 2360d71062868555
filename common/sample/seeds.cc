// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds.h"

#include <algorithm>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/seed_plan.h"

namespace millrace {
namespace {

// Numbers in the split of the seeds at `positions` among those that
// `partition` owns, in split order. One pass over the split, positions sorted
// first: O(split) a batch, which --seed-order local pays for its locality.
std::vector<uint64_t> OwnedNumbers(const PartitionBook& book,
                                   const Split& split, int partition,
                                   const std::vector<uint64_t>& positions) {
  std::vector<size_t> order(positions.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return positions[a] < positions[b]; });
  std::vector<uint64_t> numbers(positions.size());
  uint64_t owned = 0;
  size_t next = 0;
  for (int64_t i = 0; i < split.id.rows() && next < order.size(); ++i) {
    const auto id = static_cast<uint64_t>(split.id.IntegerAt(i));
    if (id < book.begin(partition) || id >= book.end(partition)) continue;
    if (owned == positions[order[next]]) {
      numbers[order[next++]] = static_cast<uint64_t>(i);
    }
    ++owned;
  }
  return numbers;
}

const SplitInfo* FindSplitInfo(const Manifest& manifest,
                               const ResolvedJob& job) {
  for (const SplitInfo& info : manifest.splits) {
    if (info.type == job.seed_type && info.name == job.spec.split) {
      return &info;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<ResolvedSeeds> SplitSeeds(const Store& store,
                                         const ResolvedJob& job, uint32_t epoch,
                                         uint32_t batch) {
  if (job.spec.split.empty()) {
    return absl::InvalidArgumentError(
        "the job names no split and the request brings no seeds");
  }
  MILLRACE_ASSIGN_OR_RETURN(const Split* split,
                            store.FindSplit(job.seed_type, job.spec.split));
  const SplitInfo* info = FindSplitInfo(store.manifest(), job);
  const SeedPlan plan(job.spec, info->part_counts);
  MILLRACE_ASSIGN_OR_RETURN(SeedPlan::BatchPositions where,
                            plan.Positions(epoch, batch));
  if (where.partition >= 0) {
    where.positions = OwnedNumbers(store.book(job.seed_type), *split,
                                   where.partition, where.positions);
  }
  ResolvedSeeds seeds;
  for (const uint64_t number : where.positions) {
    const auto i = static_cast<int64_t>(number);
    seeds.ids.push_back(static_cast<uint64_t>(split->id.IntegerAt(i)));
    if (seeds.ids.back() >= store.book(job.seed_type).node_count()) {
      return absl::DataLossError(
          StrCat((store.path() /
                  SplitPath(store.schema().node_types[job.seed_type].name,
                            info->name, "id"))
                     .string(),
                 " is damaged: index ", i, " is ", seeds.ids.back(), " of ",
                 store.book(job.seed_type).node_count(),
                 " nodes\nrun `millrace verify` on the store"));
    }
    seeds.original_ids.push_back(split->original_id.IntegerAt(i));
  }
  return seeds;
}

absl::StatusOr<std::vector<uint64_t>> ResolveIds(
    const Store& store, TypeIndex type, std::span<const int64_t> original_ids) {
  const PartitionBook& book = store.book(type);
  const uint64_t width = book.lookup_width();
  std::vector<uint64_t> ids;
  ids.reserve(original_ids.size());
  for (size_t i = 0; i < original_ids.size(); ++i) {
    const auto original = static_cast<uint64_t>(original_ids[i]);
    if (original >= book.node_count()) {
      return absl::InvalidArgumentError(StrCat(
          "seed ", original_ids[i], " at position ", i,
          " is out of range; node type ", store.schema().node_types[type].name,
          " has ", book.node_count(), " nodes"));
    }
    const int part = static_cast<int>(original / width);
    const Partition* partition = store.partition(part);
    if (partition == nullptr) {
      return absl::FailedPreconditionError(
          StrCat("partition ", part, " is not open in this process"));
    }
    ids.push_back(static_cast<uint64_t>(partition->nodes[type].lookup.IntegerAt(
        static_cast<int64_t>(original % width))));
    if (ids.back() >= book.node_count()) {
      return absl::DataLossError(StrCat(
          (store.path() /
           LookupPath(part, store.schema().node_types[type].name))
              .string(),
          " is damaged: index ", original % width, " is ", ids.back(), " of ",
          book.node_count(), " nodes\nrun `millrace verify` on the store"));
    }
  }
  return ids;
}

}  // namespace millrace
