// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/sample_request.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/resolve_job.h"
#include "common/wire/cast.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "common/wire/limits.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

absl::Status CheckLimits(const JobSpec& spec) {
  if (spec.batch_size > kMaxSeeds) {
    return absl::InvalidArgumentError(StrCat(
        "batch size ", spec.batch_size, " is above the limit of ", kMaxSeeds));
  }
  return absl::OkStatus();
}

absl::Status CheckCasts(const Schema& schema, const Columns& columns) {
  if (!columns.features || columns.feature_dtype == DType::kNone) {
    return absl::OkStatus();
  }
  for (const NodeType& type : schema.node_types) {
    if (!type.feature.present()) continue;
    MILLRACE_RETURN_IF_ERROR(CheckCast(type, columns.feature_dtype));
  }
  return absl::OkStatus();
}

// Reads nodes of one type by id. The client keeps the original ids, which the
// draws do not need.
absl::StatusOr<ResolvedNodes> ReadNodes(const std::string& bytes,
                                        const NodeType& type,
                                        std::string_view field) {
  ResolvedNodes nodes;
  MILLRACE_ASSIGN_OR_RETURN(nodes.ids,
                            ReadIds(bytes, type.id_dtype(), 0,
                                    static_cast<uint64_t>(type.count), field));
  nodes.original_ids.resize(nodes.ids.size());
  return nodes;
}

absl::Status CheckExplicitSeeds(const ResolvedJob& job,
                                const ResolvedSeeds& seeds) {
  const size_t n = seeds.size();
  const bool edges = job.spec.seed_kind == SeedKind::kEdge;
  if (std::max(n, seeds.negative_dst.size()) > static_cast<size_t>(kMaxSeeds)) {
    return absl::InvalidArgumentError(
        StrCat(n, " explicit seeds and ", seeds.negative_dst.size(),
               " negatives are above the limit of ", kMaxSeeds));
  }
  if (seeds.dst.size() != (edges ? n : 0) ||
      seeds.negative_dst.size() % n != 0 ||
      (!seeds.times.empty() && seeds.times.size() != n)) {
    return absl::InvalidArgumentError(
        StrCat(n, " explicit seeds with ", seeds.dst.size(), " destinations, ",
               seeds.negative_dst.size(), " negatives and ", seeds.times.size(),
               " times"));
  }
  return absl::OkStatus();
}

// Refuses columns that belong to explicit seeds in a request without any.
absl::Status CheckNoSeeds(const v1::SampleRequest& proto) {
  if (proto.explicit_dst_ids().empty() &&
      proto.explicit_negative_ids().empty() && proto.explicit_times().empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "explicit_dst_ids, explicit_negative_ids or explicit_times without "
      "explicit_ids\nsend the seeds that they belong to");
}

absl::Status CheckCachedRows(const v1::SampleRequest& proto,
                             const Schema& schema) {
  const auto count = static_cast<size_t>(proto.cached_rows_size());
  if (count <= schema.node_types.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(count, " cached_rows: the graph has ", schema.node_types.size(),
             " node types\nsend one for each type, or none"));
}

absl::StatusOr<ResolvedSeeds> ReadExplicitSeeds(
    const Schema& schema, const ResolvedJob& job,
    const v1::SampleRequest& proto) {
  const bool edges = job.spec.seed_kind == SeedKind::kEdge;
  const NodeType& dst_type = schema.node_types[job.seed_type];
  const NodeType& src_type =
      edges ? schema.node_types[schema.relations[job.seed_relation].src]
            : dst_type;
  ResolvedSeeds seeds;
  MILLRACE_ASSIGN_OR_RETURN(
      static_cast<ResolvedNodes&>(seeds),
      ReadNodes(proto.explicit_ids(), src_type, "explicit_ids"));
  MILLRACE_ASSIGN_OR_RETURN(seeds.dst, ReadNodes(proto.explicit_dst_ids(),
                                                 dst_type, "explicit_dst_ids"));
  MILLRACE_ASSIGN_OR_RETURN(seeds.negative_dst,
                            ReadNodes(proto.explicit_negative_ids(), dst_type,
                                      "explicit_negative_ids"));
  MILLRACE_ASSIGN_OR_RETURN(
      seeds.times, ReadRaw<int64_t>(proto.explicit_times(), "explicit_times"));
  MILLRACE_RETURN_IF_ERROR(CheckExplicitSeeds(job, seeds));
  return seeds;
}

// Checks everything but the splits that the client relies on.
absl::StatusOr<SampleRequest> Resolve(const ServedStore& store,
                                      const v1::SampleRequest& proto) {
  const Manifest& manifest = store->manifest();
  SampleRequest request;
  MILLRACE_ASSIGN_OR_RETURN(const JobSpec spec, JobFromProto(proto.job()));
  MILLRACE_ASSIGN_OR_RETURN(request.columns, ColumnsFromProto(proto.columns()));
  MILLRACE_RETURN_IF_ERROR(CheckLimits(spec));
  MILLRACE_RETURN_IF_ERROR(CheckCasts(manifest.schema, request.columns));
  MILLRACE_RETURN_IF_ERROR(CheckColumns(request.columns, manifest.schema));
  MILLRACE_ASSIGN_OR_RETURN(request.job, ResolveJob(spec, manifest));
  MILLRACE_RETURN_IF_ERROR(CheckCachedRows(proto, manifest.schema));
  request.cached_rows.assign(proto.cached_rows().begin(),
                             proto.cached_rows().end());
  request.epoch = proto.epoch();
  request.batch = proto.batch();
  request.explicit_seeds = !proto.explicit_ids().empty();
  request.explicit_negatives = !proto.explicit_negative_ids().empty();
  if (request.explicit_seeds) {
    MILLRACE_ASSIGN_OR_RETURN(
        request.seeds, ReadExplicitSeeds(manifest.schema, request.job, proto));
  } else {
    MILLRACE_RETURN_IF_ERROR(CheckNoSeeds(proto));
    MILLRACE_ASSIGN_OR_RETURN(
        request.seeds,
        store.seeds().ReadBatch(request.job, proto.epoch(), proto.batch()));
  }
  request.job_hash = std::hash<std::string>()(
      proto.job().SerializeAsString() + proto.columns().SerializeAsString());
  return request;
}

}  // namespace

absl::StatusOr<SampleRequest> CheckSampleRequest(
    ServedStore& store, const v1::SampleRequest& proto) {
  MILLRACE_RETURN_IF_ERROR(store.CheckSplits(
      UsedSplitsFromProto(proto.splits()), proto.job().train_graph()));
  const Store& seen = *store;
  absl::StatusOr<SampleRequest> request = Resolve(store, proto);
  // A client that sends no fingerprints may refer to a split added since.
  if (absl::IsNotFound(request.status()) && store.LookForSplits(seen)) {
    return Resolve(store, proto);
  }
  return request;
}

}  // namespace millrace
