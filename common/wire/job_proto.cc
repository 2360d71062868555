// SPDX-License-Identifier: Apache-2.0
#include "common/wire/job_proto.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/manifest_checks.h"
#include "job.pb.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

absl::Status BadEnum(std::string_view field, int value) {
  return absl::InvalidArgumentError(StrCat("unknown ", field, " ", value));
}

absl::StatusOr<DType> DTypeFromProto(v1::DType dtype, std::string_view field) {
  if (!v1::DType_IsValid(dtype)) return BadEnum(field, dtype);
  return static_cast<DType>(dtype);
}

absl::Status CheckJobEnums(const v1::Job& in) {
  if (!v1::Job::SeedKind_IsValid(in.seed_kind())) {
    return BadEnum("job.seed_kind", in.seed_kind());
  }
  if (!v1::Job::SeedOrder_IsValid(in.seed_order())) {
    return BadEnum("job.seed_order", in.seed_order());
  }
  if (!v1::Job::Direction_IsValid(in.direction())) {
    return BadEnum("job.direction", in.direction());
  }
  if (!v1::Job::Method_IsValid(in.method())) {
    return BadEnum("job.method", in.method());
  }
  if (!v1::Job::Temporal_IsValid(in.temporal())) {
    return BadEnum("job.temporal", in.temporal());
  }
  if (!v1::Job::Negatives_IsValid(in.negatives())) {
    return BadEnum("job.negatives", in.negatives());
  }
  if (!v1::Job::Exclude_IsValid(in.exclude())) {
    return BadEnum("job.exclude", in.exclude());
  }
  return absl::OkStatus();
}

void SpecToProto(const ColumnSpec& spec, v1::DescribeReply::ColumnSpec& out) {
  out.set_dtype(static_cast<v1::DType>(spec.dtype));
  for (int64_t dimension : spec.row_shape) out.add_row_shape(dimension);
}

absl::StatusOr<ColumnSpec> SpecFromProto(
    const v1::DescribeReply::ColumnSpec& in, std::string_view owner) {
  ColumnSpec spec;
  MILLRACE_ASSIGN_OR_RETURN(spec.dtype,
                            DTypeFromProto(in.dtype(), "column dtype"));
  // Keeps the bytes of any number of rows below 2^63.
  constexpr uint64_t kMaxRowElements = uint64_t{1} << 26;
  uint64_t elements = 1;
  for (uint64_t dimension : in.row_shape()) {
    if (in.row_shape_size() > 2 || dimension > kMaxRowElements ||
        (elements *= dimension) > kMaxRowElements) {
      return absl::InvalidArgumentError(
          StrCat("column of ", owner, " has an unreadable shape"));
    }
    spec.row_shape.push_back(static_cast<int64_t>(dimension));
  }
  return spec;
}

void TypeToProto(const NodeType& type, const PartitionBook& book,
                 v1::DescribeReply::NodeType& out) {
  out.set_name(type.name);
  out.set_count(type.count);
  for (uint64_t offset : book.offsets()) out.add_offsets(offset);
  SpecToProto(type.feature, *out.mutable_feature());
  SpecToProto(type.label, *out.mutable_label());
  out.set_has_time(type.has_time);
  out.set_has_hotness(type.has_hotness);
}

void RelationToProto(const Relation& relation,
                     v1::DescribeReply::Relation& out) {
  out.set_src(relation.src);
  out.set_name(relation.name);
  out.set_dst(relation.dst);
  out.set_edge_count(relation.edge_count);
  out.set_max_edge_id(relation.max_edge_id);
  out.set_has_in(relation.has_in);
  out.set_has_out(relation.has_out);
  out.set_has_weight(relation.has_weight);
  out.set_time(
      static_cast<v1::DescribeReply::Relation::ListTime>(relation.time));
  out.set_has_type(relation.has_type);
  SpecToProto(relation.feature, *out.mutable_feature());
}

absl::StatusOr<PartitionBook> BookFromProto(
    const v1::DescribeReply::NodeType& in, uint32_t parts) {
  const auto& offsets = in.offsets();
  bool valid = offsets.size() == static_cast<int64_t>(parts) + 1 &&
               offsets[0] == 0 && offsets[offsets.size() - 1] == in.count();
  for (int i = 1; valid && i < offsets.size(); ++i) {
    valid = offsets[i - 1] <= offsets[i];
  }
  if (!valid) {
    return absl::InvalidArgumentError(
        StrCat("offsets of node type ", in.name(), " do not divide its ",
               in.count(), " nodes into ", parts, " partitions"));
  }
  return PartitionBook(std::vector<uint64_t>(offsets.begin(), offsets.end()));
}

absl::StatusOr<NodeType> TypeFromProto(const v1::DescribeReply::NodeType& in) {
  if (in.count() > std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(
        StrCat("node type ", in.name(), " has ", in.count(), " nodes"));
  }
  NodeType type;
  type.name = in.name();
  type.count = static_cast<int64_t>(in.count());
  MILLRACE_ASSIGN_OR_RETURN(type.feature,
                            SpecFromProto(in.feature(), in.name()));
  MILLRACE_ASSIGN_OR_RETURN(type.label, SpecFromProto(in.label(), in.name()));
  type.has_time = in.has_time();
  type.has_hotness = in.has_hotness();
  return type;
}

absl::StatusOr<Relation> RelationFromProto(
    const v1::DescribeReply::Relation& in, size_t types) {
  if (in.src() >= types || in.dst() >= types ||
      in.edge_count() > std::numeric_limits<int64_t>::max() ||
      !v1::DescribeReply::Relation::ListTime_IsValid(in.time())) {
    return absl::InvalidArgumentError(
        StrCat("unreadable relation ", in.name()));
  }
  Relation relation;
  relation.src = static_cast<TypeIndex>(in.src());
  relation.name = in.name();
  relation.dst = static_cast<TypeIndex>(in.dst());
  relation.edge_count = static_cast<int64_t>(in.edge_count());
  relation.max_edge_id = in.max_edge_id();
  relation.has_in = in.has_in();
  relation.has_out = in.has_out();
  relation.has_weight = in.has_weight();
  relation.time = static_cast<ListTime>(in.time());
  relation.has_type = in.has_type();
  MILLRACE_ASSIGN_OR_RETURN(relation.feature,
                            SpecFromProto(in.feature(), in.name()));
  return relation;
}

absl::StatusOr<SplitInfo> SplitFromProto(const v1::DescribeReply::Split& in,
                                         size_t types, uint32_t parts) {
  uint64_t sum = 0;
  bool overflow = false;
  for (uint64_t count : in.part_counts()) {
    overflow |= __builtin_add_overflow(sum, count, &sum);
  }
  if (in.node_type() >= types || overflow || sum != in.count() ||
      sum > std::numeric_limits<int64_t>::max() ||
      in.part_counts_size() != static_cast<int64_t>(parts)) {
    return absl::InvalidArgumentError(
        StrCat("counts of split ", in.name(), " disagree"));
  }
  SplitInfo split;
  split.type = static_cast<TypeIndex>(in.node_type());
  split.name = in.name();
  split.count = static_cast<int64_t>(in.count());
  split.part_counts.assign(in.part_counts().begin(), in.part_counts().end());
  split.identity.fingerprint = in.fingerprint();
  return split;
}

void EdgeSplitToProto(const EdgeSplitInfo& split,
                      v1::DescribeReply::EdgeSplit& out) {
  out.set_relation(static_cast<uint32_t>(split.relation));
  out.set_name(split.name);
  out.set_count(static_cast<uint64_t>(split.count));
  out.mutable_part_counts()->Assign(split.part_counts.begin(),
                                    split.part_counts.end());
  out.set_has_edge_id(split.has_edge_id);
  out.set_has_time(split.has_time);
  out.set_has_edge_type(split.has_edge_type);
  out.set_label(static_cast<v1::DType>(split.label.dtype));
  out.set_negatives(static_cast<uint64_t>(split.negatives));
  out.set_fingerprint(split.identity.fingerprint);
}

// Their sums and ranges are for ValidateEdgeSplit.
absl::StatusOr<EdgeSplitInfo> EdgeSplitFromProto(
    const v1::DescribeReply::EdgeSplit& in) {
  EdgeSplitInfo split;
  split.relation = static_cast<RelationIndex>(in.relation());
  split.name = in.name();
  split.count = static_cast<int64_t>(in.count());
  split.part_counts.assign(in.part_counts().begin(), in.part_counts().end());
  split.has_edge_id = in.has_edge_id();
  split.has_time = in.has_time();
  split.has_edge_type = in.has_edge_type();
  MILLRACE_ASSIGN_OR_RETURN(split.label.dtype,
                            DTypeFromProto(in.label(), "edge split label"));
  split.negatives = static_cast<int64_t>(in.negatives());
  split.identity.fingerprint = in.fingerprint();
  return split;
}

}  // namespace

void JobToProto(const JobSpec& spec, v1::Job& out) {
  out.set_seed(spec.seed);
  out.set_seed_kind(static_cast<v1::Job::SeedKind>(spec.seed_kind));
  out.set_seed_type(spec.seed_type);
  out.set_split(spec.split);
  out.mutable_fanouts()->Assign(spec.fanouts.begin(), spec.fanouts.end());
  for (const auto& [relation, fanouts] : spec.relation_fanouts) {
    v1::Job::RelationFanouts& entry = *out.add_relation_fanouts();
    entry.set_relation(relation);
    entry.mutable_fanouts()->Assign(fanouts.begin(), fanouts.end());
  }
  out.set_batch_size(spec.batch_size);
  out.set_shuffle(spec.shuffle);
  out.set_seed_order(static_cast<v1::Job::SeedOrder>(spec.seed_order));
  out.set_drop_last(spec.drop_last);
  out.set_replace(spec.replace);
  out.set_disjoint(spec.disjoint);
  out.set_direction(static_cast<v1::Job::Direction>(spec.direction));
  out.set_method(static_cast<v1::Job::Method>(spec.method));
  out.set_weighted(spec.weighted);
  out.set_temporal(static_cast<v1::Job::Temporal>(spec.temporal));
  out.set_walks(static_cast<uint32_t>(spec.walks));
  out.set_walk_length(static_cast<uint32_t>(spec.walk_length));
  out.set_restart(spec.restart);
  for (const std::string& relation : spec.metapath) out.add_metapath(relation);
  out.set_negatives(static_cast<v1::Job::Negatives>(spec.negatives.mode));
  out.set_negative_amount(spec.negatives.amount);
  out.set_exclude(static_cast<v1::Job::Exclude>(spec.exclude));
  out.set_train_graph(spec.train_graph);
}

absl::StatusOr<JobSpec> JobFromProto(const v1::Job& in) {
  MILLRACE_RETURN_IF_ERROR(CheckJobEnums(in));
  if (in.batch_size() > std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(
        StrCat("job.batch_size ", in.batch_size(), " is too large"));
  }
  JobSpec spec;
  spec.seed = in.seed();
  spec.seed_kind = static_cast<SeedKind>(in.seed_kind());
  spec.seed_type = in.seed_type();
  spec.split = in.split();
  spec.fanouts.assign(in.fanouts().begin(), in.fanouts().end());
  for (const v1::Job::RelationFanouts& entry : in.relation_fanouts()) {
    Fanouts fanouts(entry.fanouts().begin(), entry.fanouts().end());
    if (!spec.relation_fanouts.emplace(entry.relation(), std::move(fanouts))
             .second) {
      return absl::InvalidArgumentError(
          StrCat("job.relation_fanouts names ", entry.relation(), " twice"));
    }
  }
  spec.batch_size = static_cast<int64_t>(in.batch_size());
  spec.shuffle = in.shuffle();
  spec.seed_order = static_cast<SeedOrder>(in.seed_order());
  spec.drop_last = in.drop_last();
  spec.replace = in.replace();
  spec.disjoint = in.disjoint();
  spec.direction = static_cast<Direction>(in.direction());
  spec.method = static_cast<SampleMethod>(in.method());
  spec.weighted = in.weighted();
  spec.temporal = static_cast<TemporalStrategy>(in.temporal());
  // ResolveJob has lower limits.
  constexpr uint32_t kMaxInt = std::numeric_limits<int>::max();
  spec.walks = static_cast<int>(std::min(in.walks(), kMaxInt));
  spec.walk_length = static_cast<int>(std::min(in.walk_length(), kMaxInt));
  spec.restart = in.restart();
  spec.metapath.assign(in.metapath().begin(), in.metapath().end());
  spec.negatives = {static_cast<NegativeMode>(in.negatives()),
                    in.negative_amount()};
  spec.exclude = static_cast<ExcludeSeedEdges>(in.exclude());
  spec.train_graph = in.train_graph();
  return spec;
}

void ColumnsToProto(const Columns& columns, v1::Columns& out) {
  out.set_features(columns.features);
  out.set_edge_features(columns.edge_features);
  out.set_original_ids(columns.original_ids);
  out.set_edge_ids(columns.edge_ids);
  out.set_degrees(columns.degrees);
  out.set_labels(static_cast<v1::Columns::LabelRows>(columns.labels));
  out.set_feature_dtype(static_cast<v1::DType>(columns.feature_dtype));
}

absl::StatusOr<Columns> ColumnsFromProto(const v1::Columns& in) {
  if (!v1::Columns::LabelRows_IsValid(in.labels())) {
    return BadEnum("columns.labels", in.labels());
  }
  Columns columns;
  columns.features = in.features();
  columns.edge_features = in.edge_features();
  columns.original_ids = in.original_ids();
  columns.edge_ids = in.edge_ids();
  columns.degrees = in.degrees();
  columns.labels = static_cast<LabelRows>(in.labels());
  MILLRACE_ASSIGN_OR_RETURN(
      columns.feature_dtype,
      DTypeFromProto(in.feature_dtype(), "columns.feature_dtype"));
  return columns;
}

void UsedSplitsToProto(const std::vector<UsedSplit>& splits,
                       UsedSplitProtos& out) {
  for (const UsedSplit& split : splits) {
    v1::UsedSplit& entry = *out.Add();
    entry.set_type(split.type);
    entry.set_name(split.name);
    entry.set_fingerprint(split.fingerprint);
  }
}

std::vector<UsedSplit> UsedSplitsFromProto(const UsedSplitProtos& in) {
  std::vector<UsedSplit> splits;
  for (const v1::UsedSplit& entry : in) {
    splits.push_back({entry.type(), entry.name(), entry.fingerprint()});
  }
  return splits;
}

void ManifestToProto(const Manifest& manifest, v1::DescribeReply& out) {
  out.set_sampling_version(manifest.sampling_version);
  out.set_store_uuid(manifest.uuid);
  out.set_fingerprint(manifest.fingerprint);
  out.set_dataset_fingerprint(manifest.dataset_fingerprint);
  out.set_neighbor_original_ids(manifest.draws_by_neighbor());
  out.set_parts(manifest.parts());
  for (size_t t = 0; t < manifest.schema.node_types.size(); ++t) {
    TypeToProto(manifest.schema.node_types[t], manifest.books[t],
                *out.add_node_types());
  }
  for (const Relation& relation : manifest.schema.relations) {
    RelationToProto(relation, *out.add_relations());
  }
  for (const SplitInfo& split : manifest.splits) {
    v1::DescribeReply::Split& entry = *out.add_splits();
    entry.set_node_type(split.type);
    entry.set_name(split.name);
    entry.set_count(split.count);
    entry.mutable_part_counts()->Assign(split.part_counts.begin(),
                                        split.part_counts.end());
    entry.set_fingerprint(split.identity.fingerprint);
  }
  for (const EdgeSplitInfo& split : manifest.edge_splits) {
    EdgeSplitToProto(split, *out.add_edge_splits());
  }
}

absl::StatusOr<Manifest> ManifestFromProto(const v1::DescribeReply& in) {
  constexpr uint32_t kMaxParts = 1 << 20;
  if (in.parts() < 1 || in.parts() > kMaxParts || in.node_types().empty()) {
    return absl::InvalidArgumentError(
        StrCat("a store of ", in.parts(), " partitions and ",
               in.node_types_size(), " node types"));
  }
  Manifest manifest;
  manifest.sampling_version = static_cast<int>(in.sampling_version());
  manifest.uuid = in.store_uuid();
  manifest.fingerprint = in.fingerprint();
  manifest.dataset_fingerprint = in.dataset_fingerprint().empty()
                                     ? in.fingerprint()
                                     : in.dataset_fingerprint();
  manifest.neighbor_original_ids = in.neighbor_original_ids();
  for (const auto& entry : in.node_types()) {
    MILLRACE_ASSIGN_OR_RETURN(NodeType type, TypeFromProto(entry));
    MILLRACE_ASSIGN_OR_RETURN(PartitionBook book,
                              BookFromProto(entry, in.parts()));
    manifest.schema.node_types.push_back(std::move(type));
    manifest.books.push_back(std::move(book));
  }
  const size_t types = manifest.schema.node_types.size();
  for (const auto& entry : in.relations()) {
    MILLRACE_ASSIGN_OR_RETURN(Relation relation,
                              RelationFromProto(entry, types));
    manifest.schema.relations.push_back(std::move(relation));
  }
  MILLRACE_RETURN_IF_ERROR(ValidateSchema(manifest.schema));
  for (const auto& entry : in.splits()) {
    MILLRACE_ASSIGN_OR_RETURN(SplitInfo split,
                              SplitFromProto(entry, types, in.parts()));
    manifest.splits.push_back(std::move(split));
  }
  for (const auto& entry : in.edge_splits()) {
    MILLRACE_ASSIGN_OR_RETURN(EdgeSplitInfo split, EdgeSplitFromProto(entry));
    MILLRACE_RETURN_IF_ERROR(ValidateEdgeSplit(manifest, split));
    manifest.edge_splits.push_back(std::move(split));
  }
  return manifest;
}

}  // namespace millrace
