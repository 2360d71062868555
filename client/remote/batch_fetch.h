// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/remote/attempt_calls.h"
#include "client/remote/batch_receiver.h"
#include "client/remote/call_context.h"
#include "client/remote/feature_cache.h"
#include "client/remote/fetch_trace.h"
#include "client/remote/retry.h"
#include "client/remote/seed_lookup.h"
#include "common/base/mutex.h"
#include "common/grpc/call/refusals.h"
#include "common/grpc/call/timer.h"
#include "common/sample/batch_source.h"

namespace millrace {

// Fetches one batch from a fleet, in up to three stages: looks up the ids of
// explicit seeds, looks up their times for temporal jobs (see SeedLookup for
// both), and streams the batch from its home, asking the other owners for their
// rows meanwhile (see BatchReceiver). If any call of a stage fails, all of its
// calls are abandoned, and the next attempt repeats it with new memory, as
// Retry decides. States: attempt (calls in flight) <-> waiting for a retry ->
// finished. A fetch runs through Start() -> StartAttempt() -> StartStage() ->
// EndAttempt() -> EndStage(), which starts the next stage, or Finish(). After a
// failure, EndAttempt() sleeps, and OnWake() starts the next attempt.
// Threads: Start() once; Cancel() on any thread; the rest runs on threads of
// gRPC and of the timer.
class BatchFetch : public Sleeper,
                   public std::enable_shared_from_this<BatchFetch> {
 public:
  struct Options {
    Fleet& fleet;  // all references outlive the calls
    Hedging& hedging;
    Timer& timer;
    const Manifest& manifest;
    absl::Duration call_timeout;  // of one attempt of one call
    int home = 0;                 // partition
    absl::Duration partition_wait;
    uint64_t max_batch_bytes = 0;
    std::atomic<uint64_t>& received;  // counts bytes
    std::atomic<int64_t>& retries;    // counts attempts after the first
    // Feature rows that need not be fetched; null if there are none.
    std::shared_ptr<const CachedFeatures> cache = nullptr;
    // Of the batch; each attempt appends its number.
    std::string request_id = {};
    // Batches that take longer are logged; 0 for none.
    absl::Duration trace_slow = absl::ZeroDuration();
  };
  // `job` must live until `done` has run.
  BatchFetch(const Options& options, const ResolvedJob& job,
             BatchRequest request, BatchSource::BatchCallback done);

  void Start() { StartAttempt(); }
  // Ends the fetch with CANCELLED unless it is finished.
  void Cancel();
  // Called after the pause between attempts; makes the next attempt.
  void OnWake() override;

 private:
  enum class Stage { kIds, kTimes, kBatch };

  void StartAttempt();
  void StartStage();
  absl::Status StartCalls(const std::shared_ptr<AttemptCalls>& calls);
  absl::Status StartBatch(const std::shared_ptr<AttemptCalls>& calls);
  ::grpc::ByteBuffer MakeMessage(const BatchReceiver& receiver) const;
  void EndAttempt(absl::Status failure);
  absl::StatusOr<absl::Duration> PauseAfter(const absl::Status& failure);
  void EndStage();
  void SleepFor(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(absl::StatusOr<Batch> batch);

  const Options options_;
  int attempts_ = 0;                   // by one attempt at a time
  std::string request_id_;             // of the attempt
  std::unique_ptr<FetchTrace> trace_;  // null if slow batches are not logged
  Retry retry_;
  Refusals refusals_;
  const CallContext context_;
  const ResolvedJob& job_;
  BatchSource::BatchCallback done_;

  // Accessed by one attempt at a time.
  BatchRequest request_;             // the seeds' times are added
  std::optional<SeedLookup> seeds_;  // explicit ones
  Stage stage_;
  std::shared_ptr<BatchReceiver> receiver_;  // shared with the stream

  Mutex mutex_;
  // The calls of the current attempt; shared with those calls.
  std::shared_ptr<AttemptCalls> calls_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Timer::Ticket> ticket_ ABSL_GUARDED_BY(mutex_);  // asleep
};

}  // namespace millrace
