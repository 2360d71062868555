// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/sample_call.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"
#include "common/sample/seeds/negatives.h"
#include "common/sample/seeds/split_seeds.h"
#include "common/wire/cast.h"
#include "common/wire/error_info.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "sampler.grpc.pb.h"
#include "server/load/hop_budget.h"
#include "server/load/request_limits.h"
#include "server/peers/peer_edge_directory.h"
#include "server/peers/peer_neighbor_source.h"
#include "server/rpc/batch_stream.h"
#include "server/rpc/parse_request.h"

namespace millrace {
namespace {

constexpr uint64_t kBytesPerSeed = 160;  // besides the batch

// How long before the client's deadline to give up on an owner, so that there
// is time to tell the client which one did not answer.
constexpr absl::Duration kTimeToTell = absl::Seconds(1);

absl::Status CheckLimits(const JobSpec& spec) {
  if (spec.batch_size > kMaxSeeds) {
    return absl::InvalidArgumentError(StrCat(
        "batch size ", spec.batch_size, " is above the limit of ", kMaxSeeds));
  }
  return absl::OkStatus();
}

absl::Status CheckCast(const Schema& schema, const Columns& columns) {
  if (!columns.features || columns.feature_dtype == DType::kNone) {
    return absl::OkStatus();
  }
  for (const NodeType& type : schema.node_types) {
    if (type.feature.present() &&
        !CanCast(type.feature.dtype, columns.feature_dtype)) {
      return absl::InvalidArgumentError(StrCat(
          "features of ", type.name, " are ", DTypeName(type.feature.dtype),
          " and cannot be sent as ", DTypeName(columns.feature_dtype)));
    }
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

// Memory of a call from the end of its hops on. The arrays of a batch come from
// vectors that grew by doubling, so they may take up to twice their bytes. In
// addition there are a few frames, and the SentRows: three lists of local ids
// and one of edges.
uint64_t StreamingBytes(const Batch& batch) {
  uint64_t entries = 0;
  for (const NodeBlock& block : batch.nodes) entries += 3 * block.count();
  for (const EdgeBlock& block : batch.edges) {
    entries += static_cast<uint64_t>(block.feature_row.rows());
  }
  return kMaxHeldFrameBytes + 2 * batch.total_bytes() +
         sizeof(uint32_t) * entries;
}

}  // namespace

// A request that has been read and checked.
struct SampleCall::Request {
  v1::SampleRequest proto;
  ResolvedJob job;
  Columns columns;
  ResolvedSeeds seeds;
  bool explicit_seeds = false;
  std::vector<uint64_t> cached_rows;
  uint64_t job_hash = 0;
};

SampleCall::SampleCall(ServerCore& core, ::grpc::CallbackServerContext* context)
    : FrameSender(core, core.sample_calls, context, core.leaf_pool),
      owners_deadline_(deadline() -
                       std::min(kTimeToTell, (deadline() - SteadyNow()) / 10)) {
  Begin();
}

void SampleCall::OnRequest() {
  const absl::Status status =
      ReserveRequest(core().admission, *v1::SampleRequest::descriptor());
  if (!status.ok()) return End(status);
  Start(core().sample_pool);
}

void SampleCall::OnDone() {
  core().metrics.CountCall("Sample", final_status());
  source_.reset();
  Leave();
  delete this;
}

absl::StatusOr<std::optional<::grpc::ByteBuffer>> SampleCall::NextFrame() {
  if (source_ == nullptr) {
    if (const absl::Status made = MakeBatch(); !made.ok()) {
      return WithOwnersDamage(made);
    }
  }
  auto frame = source_->Next();
  if (frame.ok() && frame->has_value()) {
    core().metrics.AddBytes((*frame)->Length());
  }
  return frame;
}

// If a partition other than the home is damaged here, the client should retry
// on this server, which will then ask another server for that partition.
absl::Status SampleCall::WithOwnersDamage(const absl::Status& status) {
  absl::Status noted = core().NoteDamage(status);
  const ErrorInfo info = ErrorInfoOf(noted);
  if (DamagedFileOf(status).empty() || core().fleet == nullptr ||
      info.partition.value_or(home_) == home_) {
    return noted;
  }
  return WithErrorInfo(absl::UnavailableError(FirstLine(noted)),
                       {.partition = info.partition});
}

absl::Status SampleCall::MakeBatch() {
  MILLRACE_ASSIGN_OR_RETURN(Request request, ReadRequest());
  const JobSpec& spec = request.job.spec;
  const uint64_t pairs = request.seeds.size() +
                         request.seeds.negative_dst.size() +
                         static_cast<uint64_t>(NegativeCount(
                             spec.negatives, request.seeds.size()));
  const uint64_t held =
      kMaxHeldFrameBytes + pairs * kBytesPerSeed + memory().bytes();
  MILLRACE_RETURN_IF_ERROR(
      ReserveAnew(core().admission, request.job_hash, held));
  const CallScope scope = {core(), context(), owners_deadline_};
  PeerEdgeDirectory directory(scope);
  MILLRACE_RETURN_IF_ERROR(DrawNegatives(
      request.job, core().store->manifest(), request.proto.epoch(),
      request.proto.batch(), directory, request.seeds));
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<const Batch> batch,
                            SampleHops(request, held));
  const StreamContent content = {
      core().store->manifest(), request.job, request.columns,
      request.explicit_seeds, !request.proto.explicit_negative_ids().empty()};
  source_ =
      StreamBatch(*core().store, content, batch, home_, request.cached_rows);
  return absl::OkStatus();
}

absl::StatusOr<SampleCall::Request> SampleCall::ReadRequest() {
  Request request;
  v1::SampleRequest& proto = request.proto;
  MILLRACE_RETURN_IF_ERROR(ParseRequest(message(), proto));
  MILLRACE_RETURN_IF_ERROR(
      core().CheckTarget(proto.partition(), proto.fingerprint()));
  home_ = static_cast<int>(proto.partition());
  MILLRACE_RETURN_IF_ERROR(core().store.CheckSplits(
      UsedSplitsFromProto(proto.splits()), proto.job().train_graph()));
  const Store& seen = *core().store;
  absl::Status resolved = Resolve(request);
  // A client that sends no fingerprints may refer to a split added since.
  if (absl::IsNotFound(resolved) && core().store.LookForSplits(seen)) {
    resolved = Resolve(request);
  }
  MILLRACE_RETURN_IF_ERROR(resolved);
  return request;
}

absl::Status SampleCall::Resolve(Request& request) const {
  const v1::SampleRequest& proto = request.proto;
  const Manifest& manifest = core().store->manifest();
  MILLRACE_ASSIGN_OR_RETURN(const JobSpec spec, JobFromProto(proto.job()));
  MILLRACE_ASSIGN_OR_RETURN(request.columns, ColumnsFromProto(proto.columns()));
  MILLRACE_RETURN_IF_ERROR(CheckLimits(spec));
  MILLRACE_RETURN_IF_ERROR(CheckCast(manifest.schema, request.columns));
  MILLRACE_RETURN_IF_ERROR(CheckColumns(request.columns, manifest.schema));
  MILLRACE_ASSIGN_OR_RETURN(request.job, ResolveJob(spec, manifest));
  MILLRACE_RETURN_IF_ERROR(CheckCachedRows(proto, manifest.schema));
  request.cached_rows.assign(proto.cached_rows().begin(),
                             proto.cached_rows().end());
  request.explicit_seeds = !proto.explicit_ids().empty();
  if (request.explicit_seeds) {
    MILLRACE_ASSIGN_OR_RETURN(
        request.seeds, ReadExplicitSeeds(manifest.schema, request.job, proto));
  } else {
    MILLRACE_RETURN_IF_ERROR(CheckNoSeeds(proto));
    MILLRACE_ASSIGN_OR_RETURN(
        request.seeds, core().store.seeds().OfBatch(request.job, proto.epoch(),
                                                    proto.batch()));
  }
  request.job_hash = std::hash<std::string>()(
      proto.job().SerializeAsString() + proto.columns().SerializeAsString());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Batch>> SampleCall::SampleHops(
    const Request& request, uint64_t held) {
  HopBudget budget(*core().store, memory(), held);
  const CallScope scope = {core(), context(), owners_deadline_};
  PeerNeighborSource neighbors(scope, budget);
  const SteadyTime begin = SteadyNow();
  MILLRACE_ASSIGN_OR_RETURN(
      Batch batch,
      SampleTopology(request.job, core().store->manifest(),
                     {request.proto.epoch(), request.proto.batch(),
                      request.columns.edge_ids, request.columns.edge_features},
                     request.seeds, neighbors));
  core().metrics.ObserveSample(SteadyNow() - begin, neighbors.peer_wait());
  MILLRACE_RETURN_IF_ERROR(memory().Settle(StreamingBytes(batch)));
  // Shared by the frames in flight, which borrow its arrays.
  return std::make_shared<const Batch>(std::move(batch));
}

}  // namespace millrace
