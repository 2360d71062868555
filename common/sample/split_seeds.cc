// SPDX-License-Identifier: Apache-2.0
#include "common/sample/split_seeds.h"

#include <numeric>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
SplitSeeds::SplitSeeds(const Store& store)
    : store_(store), owned_(store.manifest().splits.size()) {}

absl::StatusOr<ResolvedSeeds> SplitSeeds::OfBatch(const ResolvedJob& job,
                                                  uint32_t epoch,
                                                  uint32_t batch) const {
  if (job.spec.split.empty()) {
    return absl::InvalidArgumentError(
        "the job names no split and the request brings no seeds");
  }
  const Manifest& manifest = store_.manifest();
  MILLRACE_ASSIGN_OR_RETURN(const size_t index,
                            manifest.FindSplit(job.seed_type, job.spec.split));
  MILLRACE_ASSIGN_OR_RETURN(const Split* split,
                            store_.FindSplit(job.seed_type, job.spec.split));
  const SeedPlan plan(job.spec, manifest.splits[index].part_counts);
  MILLRACE_ASSIGN_OR_RETURN(const SeedPlan::BatchPositions where,
                            plan.Positions(epoch, batch));
  std::vector<uint64_t> numbers = where.positions;
  if (where.partition >= 0) {
    MILLRACE_ASSIGN_OR_RETURN(numbers, Numbers(index, where));
  }
  const uint64_t nodes = store_.book(job.seed_type).node_count();
  ResolvedSeeds seeds;
  for (const uint64_t number : numbers) {
    const auto i = static_cast<int64_t>(number);
    const auto id = static_cast<uint64_t>(split->id.IntegerAt(i));
    if (id >= nodes) return OutOfRange(index, i, id);
    seeds.ids.push_back(id);
    seeds.original_ids.push_back(split->original_id.IntegerAt(i));
    if (split->time.present()) seeds.times.push_back(split->time.IntegerAt(i));
  }
  return seeds;
}

absl::StatusOr<std::vector<uint64_t>> SplitSeeds::Numbers(
    size_t split, const SeedPlan::BatchPositions& where) const {
  Owned& owned = owned_[split];
  std::call_once(owned.once, [&] { owned.status = MakeOwned(split, owned); });
  MILLRACE_RETURN_IF_ERROR(owned.status);
  const uint64_t* of_partition =
      owned.numbers.data() + owned.begins[where.partition];
  std::vector<uint64_t> numbers;
  numbers.reserve(where.positions.size());
  for (const uint64_t position : where.positions) {
    numbers.push_back(of_partition[position]);
  }
  return numbers;
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
