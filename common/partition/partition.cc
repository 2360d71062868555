// SPDX-License-Identifier: Apache-2.0
#include "common/partition/partition.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/graph/edge_split_writer.h"
#include "common/graph/store.h"
#include "common/graph/store_writer.h"
#include "common/partition/assignment.h"
#include "common/partition/hotness.h"
#include "common/partition/ldg_partition.h"
#include "common/partition/metis_partition.h"
#include "common/partition/partition_nodes.h"
#include "common/partition/renumbering.h"

namespace millrace {
namespace {

std::vector<Direction> DirectionsOf(StoredDirections directions) {
  switch (directions) {
    case StoredDirections::kIn:
      return {Direction::kIn};
    case StoredDirections::kOut:
      return {Direction::kOut};
    case StoredDirections::kBoth:
      break;
  }
  return {Direction::kIn, Direction::kOut};
}

absl::Status CheckOptions(const PartitionOptions& options) {
  if (options.parts < 1 || options.parts > kMaxPartitions) {
    return InvalidField({.problem = FieldError::Problem::kOutOfRange,
                         .field = "parts",
                         .value = StrCat(options.parts),
                         .limit = StrCat("1 to ", kMaxPartitions)});
  }
  const bool given = options.method == PartitionMethod::kGiven;
  if (given && options.assignment.empty()) {
    return InvalidField({.problem = FieldError::Problem::kNeeds,
                         .field = "method",
                         .value = "given",
                         .other_field = "assignment"},
                        Reason{"no_assignment"});
  }
  if (!given && !options.assignment.empty()) {
    return InvalidField({.problem = FieldError::Problem::kNeeds,
                         .field = "assignment",
                         .other_field = "method",
                         .other_value = "given"});
  }
  return absl::OkStatus();
}

absl::Status CheckDataset(const Store& dataset,
                          const PartitionOptions& options) {
  if (dataset.partition_count() != 1 ||
      dataset.manifest().partitioning.method != "none") {
    return absl::FailedPreconditionError(
        StrCat(dataset.path().string(),
               " is already partitioned\npartition the dataset that it was "
               "made from"));
  }
  const Schema& schema = dataset.schema();
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    for (const Direction direction : DirectionsOf(options.directions)) {
      const Relation& relation = schema.relations[i];
      if (direction == Direction::kIn ? relation.has_in : relation.has_out) {
        continue;
      }
      const std::string_view name = DirectionName(direction);
      return WithReason(
          absl::FailedPreconditionError(StrCat(
              dataset.path().string(), ": no ", name, "-lists of relation ",
              schema.RelationName(static_cast<RelationIndex>(i)))),
          Reason{"no_lists_in_dataset"});
    }
  }
  for (const NodeType& type : schema.node_types) {
    MILLRACE_RETURN_IF_ERROR(
        CheckFeatureCast(type.name, type.feature.dtype, options.feature_dtype));
  }
  return absl::OkStatus();
}

// A partition without nodes serves nothing, and METIS would take a very long
// time.
absl::Status CheckParts(const Store& dataset, int parts) {
  int64_t nodes = 0;
  for (const NodeType& type : dataset.schema().node_types) nodes += type.count;
  if (parts == 1 || parts <= nodes) return absl::OkStatus();
  return WithAdvice(
      InvalidField({.field = "parts",
                    .value = StrCat(parts),
                    .limit = StrCat(dataset.path().string(), " has only ",
                                    nodes, " nodes")}),
      "ask for at most as many partitions as nodes");
}

absl::StatusOr<Assignment> Assign(const Store& dataset,
                                  const PartitionOptions& options) {
  const Schema& schema = dataset.schema();
  if (options.method == PartitionMethod::kGiven) {
    return AssignGiven(schema, options.assignment, options.parts);
  }
  if (options.parts == 1) return AssignRandom(schema, 1, options.seed);
  switch (options.method) {
    case PartitionMethod::kMetis:
      return AssignMetis(dataset, options.parts, options.seed);
    case PartitionMethod::kLdg:
      return AssignLdg(dataset, options.parts);
    case PartitionMethod::kHash:
      return AssignHash(schema, options.parts, options.seed);
    case PartitionMethod::kRandom:
    case PartitionMethod::kGiven:
      break;
  }
  return AssignRandom(schema, options.parts, options.seed);
}

absl::StatusOr<Hotness> FindHotness(const std::shared_ptr<const Store>& dataset,
                                    const PartitionOptions& options) {
  const std::vector<Direction> directions = DirectionsOf(options.directions);
  MILLRACE_ASSIGN_OR_RETURN(Hotness degrees,
                            DegreeHotness(*dataset, directions));
  if (options.hot == HotnessMethod::kDegree) return degrees;
  JobSpec job;
  job.fanouts = {15, 10, 5};
  job.seed = options.seed;
  job.direction = directions.front();
  absl::StatusOr<Hotness> hotness = PresampleHotness(
      dataset, options.hot_job.value_or(job), options.hot_batches, degrees);
  if (hotness.ok()) return hotness;
  const absl::Status& failure = hotness.status();
  const std::string what(failure.message());
  if (GetFieldError(failure).has_value()) {
    return Reworded(failure, StrCat("sampling for hot nodes: ", what));
  }
  return FieldStatus(failure.code(),
                     {.field = "hot", .value = "presample", .limit = what});
}

std::vector<Renumbering> RenumberAll(const Schema& schema,
                                     const Assignment& assignment,
                                     const Hotness& hotness, int parts) {
  std::vector<Renumbering> numbers;
  for (size_t type = 0; type < schema.node_types.size(); ++type) {
    numbers.push_back(Renumber(schema.node_types[type], assignment[type],
                               hotness[type], parts));
  }
  return numbers;
}

// Writes a split in the order of the dataset's, which is by original id.
absl::StatusOr<SplitInfo> WriteSplit(const Store& dataset, SplitInfo info,
                                     const Renumbering& numbers,
                                     StoreWriter& writer) {
  const NodeType& type = dataset.schema().node_types[info.type];
  MILLRACE_ASSIGN_OR_RETURN(const Split* split,
                            dataset.FindSplit(info.type, info.name));
  const std::span<const int64_t> originals = split->original_id.As<int64_t>();
  Array ids = Array::Allocate(type.id_dtype(), {split->original_id.rows()});
  info.part_counts.assign(static_cast<size_t>(numbers.book.partition_count()),
                          0);
  for (size_t i = 0; i < originals.size(); ++i) {
    if (originals[i] < 0 || originals[i] >= type.count) {
      return absl::DataLossError(StrCat(
          (dataset.path() / SplitPath(type.name, info.name, "original_id"))
              .string(),
          ": index ", i, " is ", originals[i], ", but there are ", type.count,
          " nodes"));
    }
    const uint64_t id = numbers.id_of[static_cast<uint64_t>(originals[i])];
    if (type.id_dtype() == DType::kUint64) {
      ids.MutableAs<uint64_t>()[i] = id;
    } else {
      ids.MutableAs<uint32_t>()[i] = static_cast<uint32_t>(id);
    }
    ++info.part_counts[static_cast<size_t>(numbers.book.Owner(id))];
  }
  MILLRACE_RETURN_IF_ERROR(
      writer.Write(SplitPath(type.name, info.name, "id"), ids));
  MILLRACE_RETURN_IF_ERROR(writer.Write(
      SplitPath(type.name, info.name, "original_id"), split->original_id));
  if (split->time.present()) {
    MILLRACE_RETURN_IF_ERROR(
        writer.Write(SplitPath(type.name, info.name, "time"), split->time));
  }
  return info;
}

absl::StatusOr<EdgeSplitInfo> WriteEdges(
    const Store& dataset, size_t index, const Manifest& manifest,
    const std::vector<Renumbering>& numbers, StoreWriter& writer) {
  const EdgeSplitInfo& info = dataset.manifest().edge_splits[index];
  const EdgeSplit& stored = dataset.edge_split(index);
  const EdgeSplitColumns split = {.relation = info.relation,
                                  .name = info.name,
                                  .src = stored.src_original_id,
                                  .dst = stored.dst_original_id,
                                  .edge_id = stored.edge_id,
                                  .time = stored.time,
                                  .edge_type = stored.edge_type,
                                  .label = stored.label,
                                  .negative = stored.negative_original_id};
  absl::StatusOr<EdgeSplitInfo> written = WriteEdgeSplit(
      split, manifest.schema, manifest.books,
      [&](TypeIndex type, int64_t original) {
        return numbers[type].id_of[static_cast<uint64_t>(original)];
      },
      [&](const std::string& path, const Array& array) {
        return writer.Write(path, array);
      });
  if (!absl::IsInvalidArgument(written.status())) return written;
  return absl::DataLossError(StrCat(dataset.path().string(), ": ",
                                    std::string(written.status().message())));
}

Schema StoredSchema(const Schema& dataset, const PartitionOptions& options) {
  Schema schema = dataset;
  for (NodeType& type : schema.node_types) {
    type.has_hotness = true;
    if (type.feature.present() && options.feature_dtype != DType::kNone) {
      type.feature.dtype = options.feature_dtype;
    }
  }
  for (Relation& relation : schema.relations) {
    relation.has_in = options.directions != StoredDirections::kOut;
    relation.has_out = options.directions != StoredDirections::kIn;
  }
  return schema;
}

bool CastsFeatures(const Schema& dataset, const Schema& stored) {
  return !std::equal(dataset.node_types.begin(), dataset.node_types.end(),
                     stored.node_types.begin(),
                     [](const NodeType& a, const NodeType& b) {
                       return a.feature == b.feature;
                     });
}

int64_t EntriesToWrite(const Schema& schema, const PartitionOptions& options) {
  int64_t entries = 0;
  for (const Relation& relation : schema.relations) {
    const bool both = options.directions == StoredDirections::kBoth ||
                      (options.directions == StoredDirections::kOut &&
                       relation.feature.present());
    entries += relation.edge_count * (both ? 2 : 1);
  }
  return entries;
}

absl::StatusOr<PartitionReport> WriteLists(
    const Store& dataset, const std::vector<Renumbering>& numbers,
    const PartitionOptions& options, StoreWriter& writer) {
  PartitionReport report;
  report.parts.resize(static_cast<size_t>(options.parts));
  ListOptions lists;
  lists.in = options.directions != StoredDirections::kOut;
  lists.out = options.directions != StoredDirections::kIn;
  lists.neighbor_original_ids = options.neighbor_original_ids;
  lists.memory_bytes = options.memory_bytes / 2;
  const Schema& schema = dataset.schema();
  Progress progress("write", EntriesToWrite(schema, options), "edges");
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    MILLRACE_RETURN_IF_ERROR(
        WriteRelation(dataset, static_cast<RelationIndex>(i), numbers, lists,
                      writer, report.parts, progress));
  }
  progress.Finish();
  for (size_t part = 0; part < report.parts.size(); ++part) {
    PartSummary& summary = report.parts[part];
    for (const Renumbering& type : numbers) {
      summary.nodes +=
          static_cast<int64_t>(type.book.end(part) - type.book.begin(part));
    }
    report.nodes += summary.nodes;
    report.edges += summary.edges;
    report.cut_edges += summary.cut_edges;
  }
  return report;
}

absl::StatusOr<PartitionReport> WriteStore(
    const Store& dataset, const std::vector<Renumbering>& numbers,
    const Hotness& hotness, const PartitionOptions& options,
    StoreWriter writer) {
  Manifest manifest;
  manifest.dataset_fingerprint = dataset.manifest().dataset_fingerprint;
  manifest.schema = StoredSchema(dataset.schema(), options);
  if (CastsFeatures(dataset.schema(), manifest.schema)) {
    manifest.dataset_fingerprint = ChangedFingerprint(
        manifest.dataset_fingerprint,
        StrCat("features as ", DTypeName(options.feature_dtype)));
  }
  for (size_t type = 0; type < numbers.size(); ++type) {
    manifest.books.push_back(numbers[type].book);
    MILLRACE_RETURN_IF_ERROR(WriteNodes(
        dataset, static_cast<TypeIndex>(type), numbers[type], hotness[type],
        options.feature_dtype, options.memory_bytes / 2, writer));
  }
  for (const SplitInfo& split : dataset.manifest().splits) {
    MILLRACE_ASSIGN_OR_RETURN(
        SplitInfo written,
        WriteSplit(dataset, split, numbers[split.type], writer));
    manifest.splits.push_back(std::move(written));
  }
  for (size_t i = 0; i < dataset.manifest().edge_splits.size(); ++i) {
    MILLRACE_ASSIGN_OR_RETURN(
        EdgeSplitInfo written,
        WriteEdges(dataset, i, manifest, numbers, writer));
    manifest.edge_splits.push_back(std::move(written));
  }
  MILLRACE_ASSIGN_OR_RETURN(PartitionReport report,
                            WriteLists(dataset, numbers, options, writer));
  manifest.neighbor_original_ids = options.neighbor_original_ids;
  manifest.partitioning.method = PartitionMethodName(options.method);
  manifest.partitioning.seed = options.seed;
  manifest.partitioning.hot = HotnessMethodName(options.hot);
  manifest.partitioning.cut_edges = report.cut_edges;
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  MILLRACE_RETURN_IF_ERROR(writer.Commit(std::move(manifest)));
  return report;
}

double Balance(const std::vector<PartSummary>& parts,
               int64_t PartSummary::*member, int64_t total) {
  int64_t largest = 0;
  for (const PartSummary& part : parts) {
    largest = std::max(largest, part.*member);
  }
  if (total == 0) return 1;
  return static_cast<double>(largest) * static_cast<double>(parts.size()) /
         static_cast<double>(total);
}

}  // namespace

std::string_view PartitionMethodName(PartitionMethod method) {
  switch (method) {
    case PartitionMethod::kMetis:
      return "metis";
    case PartitionMethod::kLdg:
      return "ldg";
    case PartitionMethod::kRandom:
      return "random";
    case PartitionMethod::kHash:
      return "hash";
    case PartitionMethod::kGiven:
      break;
  }
  return "given";
}

std::string_view HotnessMethodName(HotnessMethod method) {
  return method == HotnessMethod::kDegree ? "degree" : "presample";
}

double PartitionReport::node_balance() const {
  return Balance(parts, &PartSummary::nodes, nodes);
}

double PartitionReport::edge_balance() const {
  return Balance(parts, &PartSummary::edges, edges);
}

absl::StatusOr<PartitionReport> PartitionDataset(
    const std::filesystem::path& dataset, const std::filesystem::path& target,
    const PartitionOptions& options) {
  MILLRACE_RETURN_IF_ERROR(CheckOptions(options));
  // A shared_ptr because presampling shares the store.
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const Store> store,
                            Store::Open(dataset));
  MILLRACE_RETURN_IF_ERROR(CheckDataset(*store, options));
  MILLRACE_RETURN_IF_ERROR(CheckParts(*store, options.parts));
  MILLRACE_ASSIGN_OR_RETURN(StoreWriter writer, StoreWriter::Create(target));
  std::vector<Renumbering> numbers;
  MILLRACE_ASSIGN_OR_RETURN(const Hotness hotness, FindHotness(store, options));
  {
    MILLRACE_ASSIGN_OR_RETURN(const Assignment assignment,
                              Assign(*store, options));
    numbers = RenumberAll(store->schema(), assignment, hotness, options.parts);
  }
  return WriteStore(*store, numbers, hotness, options, std::move(writer));
}

}  // namespace millrace
