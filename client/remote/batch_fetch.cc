// SPDX-License-Identifier: Apache-2.0
#include "client/remote/batch_fetch.h"

#include <utility>

#include "client/remote/hedged_stream.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/grpc/call/unary_call.h"
#include "common/wire/job_proto.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

// Calls never end a fetch with this code: it is how Cancel() does.
absl::Status Closed() { return absl::CancelledError("the source was closed"); }

}  // namespace

BatchFetch::BatchFetch(const Options& options, const ResolvedJob& job,
                       BatchRequest request, BatchSource::BatchCallback done)
    : options_(options),
      trace_(options.trace_slow > absl::ZeroDuration()
                 ? std::make_unique<FetchTrace>(options.timer.Now())
                 : nullptr),
      retry_(options.partition_wait),
      context_{.fleet = options.fleet,
               .manifest = options.manifest,
               .timeout = options.call_timeout,
               .retry = retry_,
               .refusals = refusals_,
               .hedging = options.hedging,
               .timer = options.timer,
               .received = options.received,
               .request_id = request_id_,
               .trace = trace_.get()},
      job_(job),
      done_(std::move(done)),
      request_(std::move(request)),
      stage_(Stage::kBatch) {
  if (!request_.explicit_seeds.has_value()) return;
  seeds_.emplace(context_, job_, *request_.explicit_seeds);
  stage_ = Stage::kIds;
}

void BatchFetch::StartAttempt() {
  request_id_ = StrCat(options_.request_id, ".", ++attempts_);
  StartStage();
}

void BatchFetch::StartStage() {
  const auto calls = std::make_shared<AttemptCalls>(
      [self = shared_from_this()](absl::Status failure) {
        self->EndAttempt(std::move(failure));
      });
  {
    MutexLock lock(&mutex_);
    calls_ = calls;
    if (cancelled_) calls->Cancel();  // does not call out: there is none yet
  }
  calls->Close(StartCalls(calls));
}

absl::Status BatchFetch::StartCalls(
    const std::shared_ptr<AttemptCalls>& calls) {
  if (stage_ == Stage::kIds) return seeds_->StartIds(*calls);
  if (stage_ == Stage::kTimes) return seeds_->StartTimes(*calls);
  return StartBatch(calls);
}

absl::Status BatchFetch::StartBatch(
    const std::shared_ptr<AttemptCalls>& calls) {
  receiver_ = std::make_shared<BatchReceiver>(
      BatchReceiver::Options{.context = context_,
                             .job = job_,
                             .request = request_,
                             .home = options_.home,
                             .max_batch_bytes = options_.max_batch_bytes,
                             .cache = options_.cache,
                             .calls = calls});
  return calls->Add([this](CallDone done) {
    return StartHedgedStream(context_,
                             {.kind = Hedging::Kind::kSample,
                              .partition = options_.home,
                              .method = "/millrace.v1.Sampler/Sample",
                              .message = MakeMessage(*receiver_)},
                             receiver_, std::move(done));
  });
}

grpc::ByteBuffer BatchFetch::MakeMessage(const BatchReceiver& receiver) const {
  v1::SampleRequest message;
  JobToProto(job_.spec, *message.mutable_job());
  message.set_epoch(request_.epoch);
  message.set_batch(request_.batch);
  if (seeds_.has_value()) {
    seeds_->AppendTo(message);
    message.mutable_job()->clear_split();
  }
  UsedSplitsToProto(SplitsOfJob(job_, context_.manifest, seeds_.has_value()),
                    *message.mutable_splits());
  ColumnsToProto(request_.columns, *message.mutable_columns());
  message.mutable_cached_rows()->Add(receiver.cached_rows().begin(),
                                     receiver.cached_rows().end());
  message.set_partition(static_cast<uint32_t>(options_.home));
  message.set_fingerprint(context_.manifest.fingerprint);
  return SerializeMessage(message);
}

void BatchFetch::EndAttempt(absl::Status failure) {
  {
    MutexLock lock(&mutex_);
    calls_ = nullptr;
    if (cancelled_) failure = Closed();
  }
  if (failure.ok()) return EndStage();
  receiver_ = nullptr;
  const absl::StatusOr<absl::Duration> wait = PauseAfter(failure);
  if (!wait.ok()) return Finish(wait.status());
  ++options_.retries;
  MutexLock lock(&mutex_);
  // If Cancel() was called since the attempt ended, it found no sleep to cut
  // short.
  SleepFor(cancelled_ ? absl::ZeroDuration() : *wait);
}

absl::StatusOr<absl::Duration> BatchFetch::PauseAfter(
    const absl::Status& failure) {
  const LogRequest logged(request_id_);
  return retry_.After(failure, context_.timer.Now());
}

void BatchFetch::EndStage() {
  switch (stage_) {
    case Stage::kIds:
      stage_ = seeds_->needs_times() ? Stage::kTimes : Stage::kBatch;
      return StartStage();
    case Stage::kTimes:
      stage_ = Stage::kBatch;
      return StartStage();
    case Stage::kBatch:
      return Finish(receiver_->TakeBatch());
  }
}

void BatchFetch::SleepFor(absl::Duration wait) {
  ticket_ = context_.timer.Add(wait, shared_from_this());
}

void BatchFetch::OnWake() {
  bool cancelled = false;
  {
    MutexLock lock(&mutex_);
    ticket_.reset();
    cancelled = cancelled_;
  }
  if (!cancelled) return StartAttempt();
  Finish(Closed());
}

void BatchFetch::Finish(absl::StatusOr<Batch> batch) {
  const std::shared_ptr<BatchFetch> self = shared_from_this();
  BatchSource::BatchCallback done = std::move(done_);
  if (trace_ != nullptr && !absl::IsCancelled(batch.status())) {
    trace_->LogIfSlow({.request_id = request_id_,
                       .epoch = request_.epoch,
                       .batch = request_.batch,
                       .home = options_.home,
                       .code = batch.status().code(),
                       .attempts = attempts_,
                       .bytes = batch.ok() ? batch->total_bytes() : 0},
                      context_.timer.Now(), options_.trace_slow);
  }
  done(std::move(batch));
}

void BatchFetch::Cancel() {
  std::shared_ptr<AttemptCalls> calls;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    calls = calls_;
    const bool asleep = ticket_.has_value() && context_.timer.Remove(*ticket_);
    if (asleep) SleepFor(absl::ZeroDuration());
  }
  if (calls != nullptr) calls->Cancel();
}

}  // namespace millrace
