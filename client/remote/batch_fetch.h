// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/remote/call_context.h"
#include "client/remote/feature_cache.h"
#include "client/remote/retry.h"
#include "client/remote/row_call.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/call.h"
#include "common/grpc/call/call_timer.h"
#include "common/grpc/frames.h"
#include "common/sample/batch_source.h"
#include "common/wire/batch_assembler.h"

namespace millrace {

namespace v1 {
class SampleRequest;
}  // namespace v1

// Fetches one batch from a fleet: resolves explicit seeds (and looks up their
// times for temporal jobs), streams the topology and the home's rows (Sample),
// and asks the other owners for their rows (Gather) as soon as the ids have
// arrived. If any call fails, the whole attempt is abandoned and repeated with
// new memory, as Retry decides.
// States: attempt (calls in flight) <-> waiting for a retry -> finished.
// Threads: Start() once; Cancel() on any thread; the rest runs on threads of
// gRPC and of the timer.
class BatchFetch : public Sleeper,
                   public std::enable_shared_from_this<BatchFetch> {
 public:
  struct Options {
    Fleet& fleet;  // all references outlive the calls
    Hedging& hedging;
    const Manifest& manifest;
    absl::Duration call_timeout;  // of one attempt of one call
    int home = 0;                 // partition
    absl::Duration partition_wait;
    uint64_t max_batch_bytes = 0;
    std::atomic<uint64_t>& received;  // counts bytes
    // Feature rows that need not be fetched; null: none.
    std::shared_ptr<const CachedFeatures> cache = nullptr;
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
  // One call of an attempt; null until it has been started.
  using CallSlot = std::shared_ptr<Call>;

  // What an attempt fetches next; with explicit seeds it goes through all
  // stages.
  enum class Stage { kResolve, kTimes, kSample };

  void StartAttempt();
  absl::Status StartResolves();
  absl::Status StartResolve(TypeIndex type,
                            const std::vector<int64_t>& originals,
                            std::vector<uint64_t>& ids);
  absl::Status StartTimes();
  void AppendExplicitSeeds(v1::SampleRequest& message) const;
  absl::Status StartSample();
  absl::Status OnFrame(const ReceivedFrame& frame);
  absl::Status StartGathers();
  absl::Status GatherColumn(TypeIndex type, NodeColumn column,
                            uint32_t row_count, const Array& target);
  void TakeFromCache();
  absl::Status GatherEdgeFeatures(RelationIndex index);
  absl::Status StartGather(RowRequest request);

  // Bracket every call: the attempt ends when its last call has ended.
  void AddCall();
  void KeepCall(CallSlot call);
  void OnCallDone(const absl::Status& status);
  void EndAttempt();
  void SleepFor(absl::Duration wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(absl::StatusOr<Batch> batch);

  const Options options_;
  Retry retry_;
  Refusals refusals_;
  const CallContext context_;
  const ResolvedJob& job_;
  const std::vector<uint64_t> cached_rows_;  // held of the home's partition
  BatchSource::BatchCallback done_;

  // Accessed by the calls of one stage at a time.
  BatchRequest request_;            // the seeds' times are added
  std::vector<uint64_t> seed_ids_;  // of edge seeds: the sources
  std::vector<uint64_t> dst_ids_;
  std::vector<uint64_t> negative_ids_;
  Stage stage_;
  std::optional<BatchAssembler> assembler_;

  Mutex mutex_;
  int calls_left_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<CallSlot> calls_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // first of this attempt
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<CallTimer::Ticket> ticket_ ABSL_GUARDED_BY(mutex_);  // asleep
};

}  // namespace millrace
