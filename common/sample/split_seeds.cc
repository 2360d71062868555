// SPDX-License-Identifier: Apache-2.0
#include "common/sample/split_seeds.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/seed_plan.h"

namespace millrace {
namespace {

// Where the job's split stands in manifest.splits; there is one.
size_t IndexOfSplit(const Manifest& manifest, const ResolvedJob& job) {
  const auto found = std::find_if(
      manifest.splits.begin(), manifest.splits.end(),
      [&job](const SplitInfo& info) {
        return info.type == job.seed_type && info.name == job.spec.split;
      });
  return static_cast<size_t>(found - manifest.splits.begin());
}

}  // namespace

SplitSeeds::SplitSeeds(const Store& store)
    : store_(store), owned_(store.manifest().splits.size()) {}

absl::StatusOr<ResolvedSeeds> SplitSeeds::OfBatch(const ResolvedJob& job,
                                                  uint32_t epoch,
                                                  uint32_t batch) const {
  if (job.spec.split.empty()) {
    return absl::InvalidArgumentError(
        "the job names no split and the request brings no seeds");
  }
  MILLRACE_ASSIGN_OR_RETURN(const Split* split,
                            store_.FindSplit(job.seed_type, job.spec.split));
  const size_t index = IndexOfSplit(store_.manifest(), job);
  const SeedPlan plan(job.spec, store_.manifest().splits[index].part_counts);
  MILLRACE_ASSIGN_OR_RETURN(SeedPlan::BatchPositions where,
                            plan.Positions(epoch, batch));
  if (where.partition >= 0) {
    MILLRACE_RETURN_IF_ERROR(Localize(index, where.partition, where.positions));
  }
  const uint64_t nodes = store_.book(job.seed_type).node_count();
  ResolvedSeeds seeds;
  for (const uint64_t number : where.positions) {
    const auto i = static_cast<int64_t>(number);
    const auto id = static_cast<uint64_t>(split->id.IntegerAt(i));
    if (id >= nodes) return OutOfRange(index, i, id);
    seeds.ids.push_back(id);
    seeds.original_ids.push_back(split->original_id.IntegerAt(i));
  }
  return seeds;
}

absl::Status SplitSeeds::Localize(size_t split, int partition,
                                  std::vector<uint64_t>& positions) const {
  Owned& owned = owned_[split];
  std::call_once(owned.once, [&] { owned.status = MakeOwned(split, owned); });
  MILLRACE_RETURN_IF_ERROR(owned.status);
  const uint64_t* numbers = owned.numbers.data() + owned.begins[partition];
  for (uint64_t& position : positions) position = numbers[position];
  return absl::OkStatus();
}

absl::Status SplitSeeds::MakeOwned(size_t split, Owned& owned) const {
  const SplitInfo& info = store_.manifest().splits[split];
  const PartitionBook& book = store_.book(info.type);
  MILLRACE_ASSIGN_OR_RETURN(const Split* seeds,
                            store_.FindSplit(info.type, info.name));
  std::vector<size_t> begins(info.part_counts.size());
  std::exclusive_scan(info.part_counts.begin(), info.part_counts.end(),
                      begins.begin(), size_t{0});
  std::vector<size_t> next = begins;
  std::vector<uint64_t> numbers(static_cast<size_t>(info.count));
  for (int64_t i = 0; i < info.count; ++i) {
    const auto id = static_cast<uint64_t>(seeds->id.IntegerAt(i));
    if (id >= book.node_count()) return OutOfRange(split, i, id);
    const int part = book.Owner(id);
    const auto count = static_cast<size_t>(info.part_counts[part]);
    if (next[part] - begins[part] == count) {
      return Damaged(split, StrCat("partition ", part, " owns more than the ",
                                   count, " seeds that store.json says"));
    }
    numbers[next[part]++] = static_cast<uint64_t>(i);
  }
  owned.numbers = std::move(numbers);
  owned.begins = std::move(begins);
  return absl::OkStatus();
}

absl::Status SplitSeeds::OutOfRange(size_t split, int64_t index,
                                    uint64_t id) const {
  const TypeIndex type = store_.manifest().splits[split].type;
  return Damaged(split, StrCat("index ", index, " is ", id, " of ",
                               store_.book(type).node_count(), " nodes"));
}

absl::Status SplitSeeds::Damaged(size_t split, const std::string& what) const {
  const SplitInfo& info = store_.manifest().splits[split];
  const std::string& type = store_.schema().node_types[info.type].name;
  return absl::DataLossError(
      StrCat((store_.path() / SplitPath(type, info.name, "id")).string(),
             " is damaged: ", what, "\nrun `millrace verify` on the store"));
}

}  // namespace millrace
