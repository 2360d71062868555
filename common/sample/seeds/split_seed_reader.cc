// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/split_seed_reader.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"

namespace millrace {
namespace {

Array RowsOf(const Array& array, std::span<const uint64_t> numbers) {
  std::vector<int64_t> shape = array.shape();
  shape[0] = static_cast<int64_t>(numbers.size());
  Array rows = Array::Allocate(array.dtype(), std::move(shape));
  const size_t bytes = array.row_bytes();
  std::byte* out = rows.mutable_data();
  for (const uint64_t number : numbers) {
    std::memcpy(out, array.data() + number * bytes, bytes);
    out += bytes;
  }
  return rows;
}

template <typename T>
std::vector<T> ValuesOf(const Array& array, std::span<const uint64_t> numbers) {
  std::vector<T> values;
  if (!array.present()) return values;
  const std::span<const T> all = array.As<T>();
  values.reserve(numbers.size());
  for (const uint64_t number : numbers) values.push_back(all[number]);
  return values;
}

// The positions of all elements of the rows `numbers`, which have `width` each.
std::vector<uint64_t> Elements(std::span<const uint64_t> numbers,
                               uint64_t width) {
  std::vector<uint64_t> places;
  places.reserve(numbers.size() * width);
  for (const uint64_t number : numbers) {
    for (uint64_t i = 0; i < width; ++i) places.push_back(number * width + i);
  }
  return places;
}

}  // namespace

SplitSeedReader::SplitSeedReader(const Store& store) : store_(store) {
  for (size_t i = 0; i < store.manifest().splits.size(); ++i) {
    owned_.push_back(std::make_shared<Owned>());
  }
  for (size_t i = 0; i < store.manifest().edge_splits.size(); ++i) {
    edge_owned_.push_back(std::make_shared<Owned>());
  }
}

SplitSeedReader::SplitSeedReader(const Store& store,
                                 const SplitSeedReader& before)
    : SplitSeedReader(store) {
  const Manifest& now = store.manifest();
  const Manifest& then = before.store_.manifest();
  const auto take = [](const auto& old_splits, const auto& splits,
                       const auto& from, auto& to) {
    for (size_t i = 0; i < old_splits.size(); ++i) {
      const auto place = std::find(splits.begin(), splits.end(), old_splits[i]);
      if (place != splits.end()) to[place - splits.begin()] = from[i];
    }
  };
  take(then.splits, now.splits, before.owned_, owned_);
  take(then.edge_splits, now.edge_splits, before.edge_owned_, edge_owned_);
}

absl::StatusOr<ResolvedSeeds> SplitSeedReader::ReadBatch(const ResolvedJob& job,
                                                         uint32_t epoch,
                                                         uint32_t batch) const {
  if (job.spec.split.empty()) {
    return absl::InvalidArgumentError(
        "the job names no split and the request has no seeds");
  }
  return job.seed_relation >= 0 ? ReadEdgeSeeds(job, epoch, batch)
                                : ReadNodeSeeds(job, epoch, batch);
}

absl::StatusOr<ResolvedSeeds> SplitSeedReader::ReadNodeSeeds(
    const ResolvedJob& job, uint32_t epoch, uint32_t batch) const {
  const Manifest& manifest = store_.manifest();
  MILLRACE_ASSIGN_OR_RETURN(const size_t index,
                            manifest.FindSplit(job.seed_type, job.spec.split));
  const Split& split = store_.split(index);
  const std::string path = SplitPath(
      store_.schema().node_types[job.seed_type].name, job.spec.split, "id");
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> numbers,
      Numbers(job.spec,
              {manifest.splits[index].part_counts, job.seed_type, split.id,
               path, *owned_[index]},
              epoch, batch));
  ResolvedSeeds seeds;
  MILLRACE_RETURN_IF_ERROR(AddNodes(job.seed_type, split.id, split.original_id,
                                    path, numbers, seeds));
  seeds.times = ValuesOf<int64_t>(split.time, numbers);
  return seeds;
}

absl::StatusOr<ResolvedSeeds> SplitSeedReader::ReadEdgeSeeds(
    const ResolvedJob& job, uint32_t epoch, uint32_t batch) const {
  const Manifest& manifest = store_.manifest();
  const Relation& relation = store_.schema().relations[job.seed_relation];
  MILLRACE_ASSIGN_OR_RETURN(
      const size_t index,
      manifest.FindEdgeSplit(job.seed_relation, job.spec.split));
  const EdgeSplit& split = store_.edge_split(index);
  const auto path = [&](std::string_view column) {
    return SplitPath(store_.schema().RelationName(job.seed_relation),
                     job.spec.split, column);
  };
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> numbers,
      Numbers(job.spec,
              {manifest.edge_splits[index].part_counts, relation.dst, split.dst,
               path("dst"), *edge_owned_[index]},
              epoch, batch));
  ResolvedSeeds seeds;
  MILLRACE_RETURN_IF_ERROR(AddNodes(relation.src, split.src,
                                    split.src_original_id, path("src"), numbers,
                                    seeds));
  MILLRACE_RETURN_IF_ERROR(AddNodes(relation.dst, split.dst,
                                    split.dst_original_id, path("dst"), numbers,
                                    seeds.dst));
  seeds.times = ValuesOf<int64_t>(split.time, numbers);
  seeds.edge_types = ValuesOf<int32_t>(split.edge_type, numbers);
  if (split.label.present()) seeds.label = RowsOf(split.label, numbers);
  if (split.negative.present()) {
    const auto width = static_cast<uint64_t>(split.negative.shape()[1]);
    MILLRACE_RETURN_IF_ERROR(AddNodes(
        relation.dst, split.negative, split.negative_original_id,
        path("negative"), Elements(numbers, width), seeds.negative_dst));
  }
  return seeds;
}

absl::Status SplitSeedReader::AddNodes(TypeIndex type, const Array& ids,
                                       const Array& original_ids,
                                       const std::string& path,
                                       std::span<const uint64_t> numbers,
                                       ResolvedNodes& nodes) const {
  const uint64_t count = store_.book(type).node_count();
  for (const uint64_t number : numbers) {
    const auto i = static_cast<int64_t>(number);
    const auto id = static_cast<uint64_t>(ids.IntegerAt(i));
    if (id >= count) return OutOfRange(type, path, i, id);
    nodes.Add(id, original_ids.IntegerAt(i));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> SplitSeedReader::Numbers(
    const JobSpec& spec, const Seeds& seeds, uint32_t epoch,
    uint32_t batch) const {
  const SeedSchedule plan(spec, seeds.part_counts);
  MILLRACE_ASSIGN_OR_RETURN(const SeedSchedule::BatchPositions where,
                            plan.Positions(epoch, batch));
  if (where.partition < 0) return where.positions;
  Owned& owned = seeds.owned;
  std::call_once(owned.once, [&] { owned.status = MakeOwned(seeds); });
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

absl::Status SplitSeedReader::MakeOwned(const Seeds& seeds) const {
  const PartitionBook& book = store_.book(seeds.type);
  std::vector<size_t> begins(seeds.part_counts.size());
  std::exclusive_scan(seeds.part_counts.begin(), seeds.part_counts.end(),
                      begins.begin(), size_t{0});
  std::vector<size_t> next = begins;
  std::vector<uint64_t> numbers(static_cast<size_t>(seeds.ids.rows()));
  for (int64_t i = 0; i < seeds.ids.rows(); ++i) {
    const auto id = static_cast<uint64_t>(seeds.ids.IntegerAt(i));
    if (id >= book.node_count()) {
      return OutOfRange(seeds.type, seeds.path, i, id);
    }
    const int part = book.Owner(id);
    const auto count = static_cast<size_t>(seeds.part_counts[part]);
    if (next[part] - begins[part] == count) {
      return Damaged(seeds.path,
                     StrCat("partition ", part, " owns more seeds than the ",
                            count, " in store.json"));
    }
    numbers[next[part]++] = static_cast<uint64_t>(i);
  }
  seeds.owned.numbers = std::move(numbers);
  seeds.owned.begins = std::move(begins);
  return absl::OkStatus();
}

absl::Status SplitSeedReader::OutOfRange(TypeIndex type,
                                         const std::string& path, int64_t index,
                                         uint64_t id) const {
  return Damaged(path, StrCat("index ", index, " is ", id, ", but there are ",
                              store_.book(type).node_count(), " nodes"));
}

absl::Status SplitSeedReader::Damaged(const std::string& path,
                                      const std::string& what) const {
  return DamagedFile(store_, path, StrCat("is damaged: ", what));
}

}  // namespace millrace
