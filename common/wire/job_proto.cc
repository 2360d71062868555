// SPDX-License-Identifier: Apache-2.0
#include "common/wire/job_proto.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/wire/proto_enums.h"
#include "job.pb.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

absl::Status CheckJobEnums(const v1::Job& in) {
  if (!v1::Job::SeedKind_IsValid(in.seed_kind())) {
    return UnknownEnumerator("job.seed_kind", in.seed_kind());
  }
  if (!v1::Job::SeedOrder_IsValid(in.seed_order())) {
    return UnknownEnumerator("job.seed_order", in.seed_order());
  }
  if (!v1::Job::Direction_IsValid(in.direction())) {
    return UnknownEnumerator("job.direction", in.direction());
  }
  if (!v1::Job::Method_IsValid(in.method())) {
    return UnknownEnumerator("job.method", in.method());
  }
  if (!v1::Job::Temporal_IsValid(in.temporal())) {
    return UnknownEnumerator("job.temporal", in.temporal());
  }
  if (!v1::Job::Negatives_IsValid(in.negatives())) {
    return UnknownEnumerator("job.negatives", in.negatives());
  }
  if (!v1::Job::Exclude_IsValid(in.exclude())) {
    return UnknownEnumerator("job.exclude", in.exclude());
  }
  return absl::OkStatus();
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
    return UnknownEnumerator("columns.labels", in.labels());
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

}  // namespace millrace
