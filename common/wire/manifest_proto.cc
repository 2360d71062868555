// SPDX-License-Identifier: Apache-2.0
#include "common/wire/manifest_proto.h"

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/manifest_checks.h"
#include "common/graph/partition_book.h"
#include "common/wire/proto_enums.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

void SpecToProto(const ColumnSpec& spec, v1::DescribeReply::ColumnSpec& out) {
  out.set_dtype(static_cast<v1::DType>(spec.dtype));
  for (int64_t dimension : spec.row_shape) out.add_row_shape(dimension);
}

absl::StatusOr<ColumnSpec> SpecFromProto(
    const v1::DescribeReply::ColumnSpec& in, std::string_view owner) {
  ColumnSpec spec;
  MILLRACE_ASSIGN_OR_RETURN(spec.dtype,
                            DTypeFromProto(in.dtype(), "column dtype"));
  // Limit on the elements of a row, which keeps sizes in bytes far below 2^63.
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

// Leaves the check of sums and ranges to ValidateEdgeSplit().
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

void ManifestToProto(const Manifest& manifest, v1::DescribeReply& out) {
  out.set_sampling_version(manifest.sampling_version);
  out.set_store_uuid(manifest.uuid);
  out.set_fingerprint(manifest.fingerprint);
  out.set_dataset_fingerprint(manifest.dataset_fingerprint);
  out.set_neighbor_original_ids(manifest.draws_by_neighbor());
  out.set_parts(manifest.partition_count());
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
  if (in.parts() < 1 || in.parts() > uint32_t{kMaxPartitions} ||
      in.node_types().empty()) {
    return absl::InvalidArgumentError(
        StrCat("the store has ", in.parts(), " partitions and ",
               in.node_types_size(), " node types; expected 1 to ",
               kMaxPartitions, " partitions and at least 1 node type"));
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
