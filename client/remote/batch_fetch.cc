// SPDX-License-Identifier: Apache-2.0
#include "client/remote/batch_fetch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/remote/hedged_stream.h"
#include "client/remote/resolve_call.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/graph/owner_groups.h"
#include "common/sample/gather.h"
#include "common/sample/seeds/resolve_seeds.h"
#include "common/wire/ids.h"
#include "common/wire/job_proto.h"
#include "common/wire/limits.h"
#include "sampler.pb.h"

namespace millrace {
BatchFetch::BatchFetch(const Options& options, const ResolvedJob& job,
                       BatchRequest request, BatchSource::BatchCallback done)
    : options_(options),
      retry_(options.partition_wait),
      context_{options.fleet, options.manifest, options.call_timeout, retry_,
               refusals_,     options.hedging,  options.received},
      job_(job),
      cached_rows_(options.cache == nullptr
                       ? std::vector<uint64_t>()
                       : options.cache->CountsOf(options.home)),
      done_(std::move(done)),
      request_(std::move(request)),
      stage_(request_.explicit_seeds.has_value() ? Stage::kResolve
                                                 : Stage::kSample) {}

void BatchFetch::StartAttempt() {
  {
    MutexLock lock(&mutex_);
    failure_ = absl::OkStatus();
    calls_.clear();
  }
  assembler_.reset();
  // Counts the attempt itself as a call, so that it cannot end before all of
  // its calls have been started.
  AddCall();
  switch (stage_) {
    case Stage::kResolve:
      return OnCallDone(StartResolves());
    case Stage::kTimes:
      return OnCallDone(StartTimes());
    case Stage::kSample:
      return OnCallDone(StartSample());
  }
}

absl::Status BatchFetch::StartResolves() {
  const ExplicitSeeds& list = *request_.explicit_seeds;
  MILLRACE_RETURN_IF_ERROR(CheckExplicitSeeds(job_, list));
  // A server would refuse too, but only after all of them have been resolved.
  const size_t count = std::max(list.size(), list.negatives.size());
  if (count > static_cast<size_t>(kMaxSeeds)) {
    return absl::InvalidArgumentError(
        StrCat(count, " explicit seeds are above the limit of ", kMaxSeeds,
               " of one batch\nuse a smaller batch size"));
  }
  if (job_.seed_relation < 0) {
    return StartResolve(job_.seed_type, list.ids, seed_ids_);
  }
  const Relation& relation =
      context_.manifest.schema.relations[job_.seed_relation];
  MILLRACE_RETURN_IF_ERROR(StartResolve(relation.src, list.ids, seed_ids_));
  MILLRACE_RETURN_IF_ERROR(StartResolve(relation.dst, list.dst, dst_ids_));
  return StartResolve(relation.dst, list.negatives, negative_ids_);
}

absl::Status BatchFetch::StartResolve(TypeIndex type,
                                      const std::vector<int64_t>& originals,
                                      std::vector<uint64_t>& ids) {
  ids.resize(originals.size());
  MILLRACE_ASSIGN_OR_RETURN(
      std::vector<ResolveRequest> requests,
      SplitByLookup(context_.manifest, type, originals, ids.data()));
  for (ResolveRequest& request : requests) {
    AddCall();
    absl::StatusOr<std::shared_ptr<Call>> call = StartResolveCall(
        context_, std::move(request),
        [self = shared_from_this()](const absl::Status& status) {
          self->OnCallDone(status);
        });
    if (!call.ok()) {
      OnCallDone(call.status());
    } else {
      KeepCall(*std::move(call));
    }
  }
  return absl::OkStatus();
}

// Asks the owners of the seeds for the seeds' times.
absl::Status BatchFetch::StartTimes() {
  const auto count = static_cast<int64_t>(seed_ids_.size());
  std::vector<int64_t>& times = request_.explicit_seeds->times;
  times.resize(seed_ids_.size());
  RowRequest like;
  like.type = job_.seed_type;
  like.column = NodeColumn::kTime;
  like.target = Array::Borrow(DType::kInt64, {count}, times.data(), nullptr);
  const Array ids =
      Array::Borrow(DType::kUint64, {count}, seed_ids_.data(), nullptr);
  const PartitionBook& book = context_.manifest.books[job_.seed_type];
  for (RowRequest& request : SplitByOwner(OwnersOf(book, ids, count),
                                          book.partition_count(), ids, like)) {
    MILLRACE_RETURN_IF_ERROR(StartGather(std::move(request)));
  }
  return absl::OkStatus();
}

void BatchFetch::AppendExplicitSeeds(v1::SampleRequest& message) const {
  const Schema& schema = context_.manifest.schema;
  const DType dst_ids = schema.node_types[job_.seed_type].id_dtype();
  const DType src_ids =
      job_.seed_relation < 0
          ? dst_ids
          : schema.node_types[schema.relations[job_.seed_relation].src]
                .id_dtype();
  AppendIds(seed_ids_, src_ids, *message.mutable_explicit_ids());
  AppendIds(dst_ids_, dst_ids, *message.mutable_explicit_dst_ids());
  if (job_.spec.negatives.mode == NegativeMode::kNone) {
    AppendIds(negative_ids_, dst_ids, *message.mutable_explicit_negative_ids());
  }
  AppendRaw(std::span<const int64_t>(request_.explicit_seeds->times),
            *message.mutable_explicit_times());
}

absl::Status BatchFetch::StartSample() {
  v1::SampleRequest message;
  JobToProto(job_.spec, *message.mutable_job());
  message.set_epoch(request_.epoch);
  message.set_batch(request_.batch);
  if (request_.explicit_seeds.has_value()) {
    AppendExplicitSeeds(message);
    message.mutable_job()->clear_split();
  }
  UsedSplitsToProto(
      SplitsOfJob(job_, context_.manifest, request_.explicit_seeds.has_value()),
      *message.mutable_splits());
  ColumnsToProto(request_.columns, *message.mutable_columns());
  message.mutable_cached_rows()->Add(cached_rows_.begin(), cached_rows_.end());
  message.set_partition(static_cast<uint32_t>(options_.home));
  message.set_fingerprint(context_.manifest.fingerprint);
  AddCall();
  absl::StatusOr<std::shared_ptr<Call>> call = StartHedgedStream(
      {.context = context_,
       .kind = Hedging::Kind::kSample,
       .partition = options_.home,
       .method = "/millrace.v1.Sampler/Sample",
       .request = message.SerializeAsString(),
       .on_frame =
           [self = shared_from_this()](const ReceivedFrame& frame) {
             return self->OnFrame(frame);
           },
       .check_whole =
           [self = shared_from_this()] {
             const bool whole =
                 self->assembler_.has_value() && self->assembler_->done();
             return whole ? absl::OkStatus()
                          : absl::InternalError("a batch is not whole");
           },
       .done = [self = shared_from_this()](
                   const absl::Status& status) { self->OnCallDone(status); }});
  if (!call.ok()) {
    OnCallDone(call.status());
    return call.status();
  }
  KeepCall(*std::move(call));
  return absl::OkStatus();
}

absl::Status BatchFetch::OnFrame(const ReceivedFrame& frame) {
  retry_.NoteAnswer(options_.home, SteadyNow());
  options_.received += frame.payload_bytes();
  if (!assembler_.has_value()) {
    if (!frame.header().stream.has_value()) {
      return absl::InternalError("the first frame lacks the layout");
    }
    MILLRACE_ASSIGN_OR_RETURN(
        BatchAssembler assembler,
        BatchAssembler::Create({.manifest = context_.manifest,
                                .job = job_,
                                .request = request_,
                                .home = options_.home,
                                .cached_rows = cached_rows_,
                                .max_bytes = options_.max_batch_bytes},
                               *frame.header().stream));
    assembler_.emplace(std::move(assembler));
  }
  for (const std::span<const std::byte> piece : frame.payload()) {
    const bool had_topology = assembler_->topology_done();
    MILLRACE_RETURN_IF_ERROR(assembler_->Write(piece));
    if (!had_topology && assembler_->topology_done()) {
      MILLRACE_RETURN_IF_ERROR(StartGathers());
      TakeFromCache();  // while the calls are in flight
    }
  }
  return absl::OkStatus();
}

absl::Status BatchFetch::StartGathers() {
  const Batch& batch = assembler_->batch();
  const Columns& columns = request_.columns;
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    const TypeIndex type = static_cast<TypeIndex>(t);
    const NodeBlock& block = batch.nodes[t];
    const uint32_t label_rows = LabelRowCount(columns, block);
    MILLRACE_RETURN_IF_ERROR(
        GatherColumn(type, NodeColumn::kFeature, block.count(), block.feature));
    MILLRACE_RETURN_IF_ERROR(
        GatherColumn(type, NodeColumn::kLabel, label_rows, block.label));
    MILLRACE_RETURN_IF_ERROR(GatherColumn(type, NodeColumn::kOriginalId,
                                          block.count(), block.original_id));
    MILLRACE_RETURN_IF_ERROR(GatherColumn(type, DegreeColumn(batch.direction),
                                          block.count(), block.degree));
  }
  for (size_t r = 0; r < batch.edges.size(); ++r) {
    MILLRACE_RETURN_IF_ERROR(GatherEdgeFeatures(static_cast<RelationIndex>(r)));
  }
  return absl::OkStatus();
}

void BatchFetch::TakeFromCache() {
  if (options_.cache == nullptr) return;
  const Batch& batch = assembler_->batch();
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    const NodeBlock& block = batch.nodes[t];
    if (!block.feature.present()) continue;
    options_.cache->CopyRows(static_cast<TypeIndex>(t), block.id,
                             block.feature);
  }
}

// Asks the owners other than the home for the features of their edges.
absl::Status BatchFetch::GatherEdgeFeatures(RelationIndex index) {
  const Batch& batch = assembler_->batch();
  const EdgeBlock& block = batch.edges[index];
  const Relation& relation = context_.manifest.schema.relations[index];
  const PartitionBook& book = context_.manifest.books[relation.dst];
  if (!block.feature.present() || book.partition_count() == 1)
    return absl::OkStatus();
  RowRequest like;
  like.edge_relation = index;
  like.target = block.feature;
  const std::vector<uint32_t> all = FeatureOwners(batch, relation, block, book);
  std::vector<int> owners(all.begin(), all.end());
  std::replace(owners.begin(), owners.end(), options_.home, kNoOwner);
  for (RowRequest& request :
       SplitByOwner(owners, book.partition_count(), block.feature_row, like)) {
    MILLRACE_RETURN_IF_ERROR(StartGather(std::move(request)));
  }
  return absl::OkStatus();
}

// Asks the owners other than the home for those of the first `row_count` rows
// that the cache does not hold. Does nothing if the batch has no such column.
absl::Status BatchFetch::GatherColumn(TypeIndex type, NodeColumn column,
                                      uint32_t row_count, const Array& target) {
  const PartitionBook& book = context_.manifest.books[type];
  if (!target.present() || book.partition_count() == 1) return absl::OkStatus();
  RowRequest like;
  like.type = type;
  like.column = column;
  like.target = target;
  if (column == NodeColumn::kFeature) {
    like.feature_dtype = request_.columns.feature_dtype;
  }
  const Array& ids = assembler_->batch().nodes[type].id;
  const bool cached =
      column == NodeColumn::kFeature && options_.cache != nullptr;
  std::vector<int> owners = OwnersOf(book, ids, row_count);
  for (uint32_t i = 0; i < row_count; ++i) {
    int& owner = owners[i];
    const bool held =
        cached && options_.cache->Holds(
                      type, owner, static_cast<uint64_t>(ids.IntegerAt(i)));
    if (owner == options_.home || held) owner = kNoOwner;
  }
  for (RowRequest& request :
       SplitByOwner(owners, book.partition_count(), ids, like)) {
    MILLRACE_RETURN_IF_ERROR(StartGather(std::move(request)));
  }
  return absl::OkStatus();
}

absl::Status BatchFetch::StartGather(RowRequest request) {
  AddCall();
  absl::StatusOr<std::shared_ptr<Call>> call =
      StartRowCall(context_, std::move(request),
                   [self = shared_from_this()](const absl::Status& status) {
                     self->OnCallDone(status);
                   });
  if (!call.ok()) {
    OnCallDone(call.status());
    return call.status();
  }
  KeepCall(*std::move(call));
  return absl::OkStatus();
}

void BatchFetch::AddCall() {
  MutexLock lock(&mutex_);
  ++calls_left_;
}

void BatchFetch::KeepCall(CallSlot call) {
  bool must_cancel = false;
  {
    MutexLock lock(&mutex_);
    must_cancel = !failure_.ok() || cancelled_;
    calls_.push_back(call);
  }
  if (must_cancel) call->Cancel();
}

void BatchFetch::OnCallDone(const absl::Status& status) {
  std::vector<CallSlot> to_cancel;
  bool last = false;
  {
    MutexLock lock(&mutex_);
    if (!status.ok() && failure_.ok()) {
      failure_ = status;
      to_cancel = calls_;
    }
    last = --calls_left_ == 0;
  }
  for (const CallSlot& call : to_cancel) call->Cancel();
  if (last) EndAttempt();
}

void BatchFetch::EndAttempt() {
  absl::Status failure;
  {
    MutexLock lock(&mutex_);
    calls_.clear();
    failure =
        cancelled_ ? absl::CancelledError("the source was closed") : failure_;
  }
  if (failure.ok() && stage_ == Stage::kSample) {
    return Finish(std::move(assembler_->batch()));
  }
  if (failure.ok()) {
    const bool times = stage_ == Stage::kResolve &&
                       NeedsSeedTimes(job_, context_.manifest.schema,
                                      *request_.explicit_seeds);
    stage_ = times ? Stage::kTimes : Stage::kSample;
    return StartAttempt();
  }
  const absl::StatusOr<absl::Duration> wait =
      retry_.After(failure, SteadyNow());
  if (!wait.ok()) return Finish(wait.status());
  MutexLock lock(&mutex_);
  // If Cancel() was called since the attempt ended, it found no sleep to cut
  // short.
  SleepFor(cancelled_ ? absl::ZeroDuration() : *wait);
}

void BatchFetch::SleepFor(absl::Duration wait) {
  ticket_ = options_.hedging.timer().Add(wait, shared_from_this());
}

void BatchFetch::OnWake() {
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    ticket_.reset();
    cancelled = cancelled_;
  }
  if (!cancelled) return StartAttempt();
  Finish(absl::CancelledError("the source was closed"));
}

void BatchFetch::Finish(absl::StatusOr<Batch> batch) {
  const std::shared_ptr<BatchFetch> self = shared_from_this();
  BatchSource::BatchCallback done = std::move(done_);
  done(std::move(batch));
}

void BatchFetch::Cancel() {
  std::vector<CallSlot> calls;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    calls = calls_;
    const bool asleep =
        ticket_.has_value() && options_.hedging.timer().Remove(*ticket_);
    if (asleep) SleepFor(absl::ZeroDuration());
  }
  for (const CallSlot& call : calls) call->Cancel();
}

}  // namespace millrace
