// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/sample_rpc.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/graph/damaged_file.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/seeds/negatives.h"
#include "common/wire/error_info.h"
#include "sampler.pb.h"
#include "server/core/call_scope.h"
#include "server/load/hop_budget.h"
#include "server/load/memory_model.h"
#include "server/peers/peer_edge_directory.h"
#include "server/peers/peer_neighbor_source.h"
#include "server/rpc/batch_stream.h"
#include "server/rpc/frame_source.h"
#include "server/rpc/parse_request.h"
#include "server/rpc/sample_request.h"

namespace millrace {
namespace {

// How long before the client's deadline to give up on an owner, so that there
// is time to tell the client which one did not answer.
constexpr absl::Duration kTimeToTell = absl::Seconds(1);

SteadyTime OwnersDeadline(SteadyTime deadline) {
  return deadline - std::min(kTimeToTell, (deadline - SteadyNow()) / 10);
}

// Memory of a call before its hops, besides what its request takes.
uint64_t StartingBytes(const SampleRequest& request) {
  const size_t seeds = request.seeds.size();
  const uint64_t pairs =
      seeds + request.seeds.negative_dst.size() +
      static_cast<uint64_t>(NegativeCount(request.job.spec.negatives, seeds));
  return kMaxHeldFrameBytes + pairs * kBytesPerSeed;
}

// Memory of a call from the end of its hops on: the batch, a few frames, and
// the SentRows.
uint64_t StreamingBytes(const Batch& batch) {
  uint64_t bytes =
      kMaxHeldFrameBytes + kBytesPerBatchByte * batch.total_bytes();
  for (const NodeBlock& block : batch.nodes) {
    bytes += kSentRowsBytesPerNode * block.count();
  }
  for (const EdgeBlock& block : batch.edges) {
    bytes +=
        kSentRowsBytesPerEdge * static_cast<uint64_t>(block.feature_row.rows());
  }
  return bytes;
}

TopologyRequest TopologyOf(const SampleRequest& request) {
  return {request.epoch, request.batch, request.columns.edge_ids,
          request.columns.edge_features};
}

// Samples the batch when the first frame is wanted, and then frames it.
class SampleFrames final : public FrameMaker {
 public:
  explicit SampleFrames(IncomingCall& call)
      : call_(call),
        scope_{.core = call.core(),
               .call = call.context(),
               .deadline = OwnersDeadline(call.deadline()),
               .request_id = call.request_id(),
               .trace = call.trace()} {}

  absl::StatusOr<ThreadPool*> Prepare() override {
    MILLRACE_RETURN_IF_ERROR(call_.ReserveRequest(
        call_.core().admission, *v1::SampleRequest::descriptor()));
    return &call_.core().sample_pool;
  }

  absl::StatusOr<std::optional<::grpc::ByteBuffer>> Next() override {
    if (source_ == nullptr) {
      const absl::Status made = TimedBatch();
      if (!made.ok()) return WithOwnersDamage(made);
    }
    return source_->Next();
  }

 private:
  absl::Status TimedBatch();
  absl::Status MakeBatch();
  absl::StatusOr<SampleRequest> ReadRequest();
  absl::StatusOr<std::shared_ptr<const Batch>> SampleHops(
      const SampleRequest& request, uint64_t held);
  absl::StatusOr<std::optional<Batch>> SampleOnDevice(
      const SampleRequest& request, uint64_t held);
  absl::StatusOr<Batch> SampleByOwner(const SampleRequest& request,
                                      uint64_t held);
  absl::Status WithOwnersDamage(const absl::Status& status);

  IncomingCall& call_;
  const CallScope scope_;  // for calls to other owners
  int home_ = -1;          // partition that was asked for, once that is known
  // The block that a device has put the batch's topology into, which may be
  // larger than that.
  uint64_t pinned_bytes_ = 0;
  std::unique_ptr<FrameSource> source_;
};

absl::Status SampleFrames::TimedBatch() {
  if (scope_.trace == nullptr) return MakeBatch();
  const SteadyTime begin = SteadyNow();
  absl::Status made = MakeBatch();
  scope_.trace->NoteSampling(SteadyNow() - begin);
  return made;
}

absl::Status SampleFrames::MakeBatch() {
  ServerCore& core = call_.core();
  MILLRACE_ASSIGN_OR_RETURN(SampleRequest request, ReadRequest());
  if (scope_.trace != nullptr) {
    scope_.trace->NoteBatch({request.epoch, request.batch, home_});
  }
  const uint64_t held = StartingBytes(request) + call_.memory().bytes();
  MILLRACE_RETURN_IF_ERROR(
      call_.ReplaceReservation(core.admission, request.job_hash, held));
  PeerEdgeDirectory directory(scope_);
  MILLRACE_RETURN_IF_ERROR(DrawNegatives(request.job, core.store->manifest(),
                                         request.epoch, request.batch,
                                         directory, request.seeds));
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<const Batch> batch,
                            SampleHops(request, held));
  const StreamContent content = {core.store->manifest(), request.job,
                                 request.columns, request.explicit_seeds,
                                 request.explicit_negatives};
  source_ = StreamBatch({*core.store, core.features.get(), core.cpu_rows},
                        content, batch, home_, request.cached_rows);
  return absl::OkStatus();
}

absl::StatusOr<SampleRequest> SampleFrames::ReadRequest() {
  v1::SampleRequest proto;
  MILLRACE_RETURN_IF_ERROR(ParseRequest(call_.message(), proto));
  MILLRACE_RETURN_IF_ERROR(
      call_.core().CheckTarget(proto.partition(), proto.fingerprint()));
  home_ = static_cast<int>(proto.partition());
  return CheckSampleRequest(call_.core().store, proto);
}

absl::StatusOr<std::shared_ptr<const Batch>> SampleFrames::SampleHops(
    const SampleRequest& request, uint64_t held) {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<Batch> batch,
                            SampleOnDevice(request, held));
  if (!batch.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(batch, SampleByOwner(request, held));
  }
  MILLRACE_RETURN_IF_ERROR(
      call_.memory().Settle(StreamingBytes(*batch) + pinned_bytes_));
  // Shared by the frames in flight, which borrow its arrays.
  return std::make_shared<const Batch>(*std::move(batch));
}

// Makes the whole batch on a device; returns nullopt if that is not possible.
absl::StatusOr<std::optional<Batch>> SampleFrames::SampleOnDevice(
    const SampleRequest& request, uint64_t held) {
  ServerCore& core = call_.core();
  if (core.sampler == nullptr || !core.ReadsAll()) return std::nullopt;
  MILLRACE_RETURN_IF_ERROR(scope_.CheckNotCancelled());
  const SteadyTime begin = SteadyNow();
  absl::StatusOr<std::optional<Batch>> batch =
      core.sampler->Sample(*core.store, request.job, TopologyOf(request),
                           request.seeds, [this, held](uint64_t bytes) {
                             pinned_bytes_ = bytes;
                             return call_.memory().GrowTo(held + bytes);
                           });
  MILLRACE_RETURN_IF_ERROR(core.DeviceError(batch.status()));
  if (batch->has_value()) {
    core.hops.AddDevice(request.job.hops);
    core.metrics.ObserveSample(SteadyNow() - begin, absl::ZeroDuration());
  } else {
    pinned_bytes_ = 0;
  }
  return batch;
}

// Draws each hop from the lists of all owners, here and elsewhere.
absl::StatusOr<Batch> SampleFrames::SampleByOwner(const SampleRequest& request,
                                                  uint64_t held) {
  ServerCore& core = call_.core();
  HopBudget budget(*core.store, call_.memory(), held);
  PeerNeighborSource neighbors(scope_, budget);
  const SteadyTime begin = SteadyNow();
  MILLRACE_ASSIGN_OR_RETURN(
      Batch batch,
      SampleTopology(request.job, core.store->manifest(), TopologyOf(request),
                     request.seeds, neighbors));
  core.metrics.ObserveSample(SteadyNow() - begin, neighbors.peer_wait());
  return batch;
}

// If a partition other than the home is damaged here, the client should retry
// on this server, which will then ask another server for that partition.
absl::Status SampleFrames::WithOwnersDamage(const absl::Status& status) {
  ServerCore& core = call_.core();
  absl::Status noted = core.ErrorForClient(status);
  const ErrorInfo info = ErrorInfoOf(noted);
  if (FindDamagedFile(status).empty() || core.fleet == nullptr ||
      info.partition.value_or(home_) == home_) {
    return noted;
  }
  return WithErrorInfo(absl::UnavailableError(FirstLine(noted)),
                       {.partition = info.partition});
}

}  // namespace

StreamRpc SampleRpc(ServerCore& core) {
  return {.name = "Sample",
          .running = core.sample_calls,
          .make = [](IncomingCall& call) -> std::unique_ptr<FrameMaker> {
            return std::make_unique<SampleFrames>(call);
          }};
}

}  // namespace millrace
