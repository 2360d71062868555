// SPDX-License-Identifier: Apache-2.0
#include "client/remote_batch_source.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/remote/batch_fetch.h"
#include "client/remote/resolve_call.h"
#include "client/remote/retry.h"
#include "client/remote/row_call.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/grpc/fleet.h"
#include "common/sample/epoch_plan.h"
#include "common/sample/gather.h"
#include "common/sample/seed_plan.h"
#include "common/wire/error_info.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

// The calls of one blocking request: counts them down.
class CallGroup {
 public:
  CallDone Add() {
    absl::MutexLock lock(&mutex_);
    ++left_;
    return [this](const absl::Status& status) { Done(status); };
  }
  // Takes back an Add whose call was never started.
  void Fail(const absl::Status& status) { Done(status); }

  // Every call has a deadline, so this ends.
  absl::Status Wait() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* left) { return *left == 0; }, &left_));
    return status_;
  }

 private:
  void Done(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
    --left_;
  }

  absl::Mutex mutex_;
  int left_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

class FleetBatchSource final : public RemoteBatchSource {
 public:
  FleetBatchSource(const RemoteOptions& options, std::unique_ptr<Fleet> fleet,
                   const Manifest& manifest)
      : options_(options), fleet_(std::move(fleet)), manifest_(manifest) {}

  ~FleetBatchSource() override {
    closing_.Notify();
    std::vector<std::shared_ptr<BatchFetch>> fetches;
    {
      absl::MutexLock lock(&mutex_);
      fetches.assign(fetches_.begin(), fetches_.end());
    }
    for (const std::shared_ptr<BatchFetch>& fetch : fetches) fetch->Cancel();
    fetches.clear();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](std::set<std::shared_ptr<BatchFetch>>* set) {
          return set->empty();
        },
        &fetches_));
  }

  const Manifest& manifest() const override { return manifest_; }

  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override {
    const absl::Status possible =
        CheckColumns(request.columns, manifest_.schema);
    if (!possible.ok()) return done(possible);
    absl::StatusOr<int> home = HomeOf(job, request);
    if (!home.ok()) return done(home.status());
    const BatchFetch::Options options = {
        .fleet = *fleet_,
        .manifest = manifest_,
        .call_timeout = options_.call_timeout,
        .home = *home,
        .partition_wait = options_.partition_wait,
        .max_batch_bytes = options_.max_batch_bytes};
    // The fetch is its own key; it leaves the set once `done` has run, so that
    // the destructor waits for that too.
    auto key = std::make_shared<std::shared_ptr<BatchFetch>>();
    auto fetch = std::make_shared<BatchFetch>(
        options, job, std::move(request),
        [this, key, done = std::move(done)](absl::StatusOr<Batch> batch) {
          done(std::move(batch));
          Forget(*std::exchange(*key, nullptr));
        });
    *key = fetch;
    {
      absl::MutexLock lock(&mutex_);
      fetches_.insert(fetch);
    }
    fetch->Start();
  }

  absl::StatusOr<Array> Gather(TypeIndex type, NodeColumn column,
                               std::span<const uint64_t> ids) override;
  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override;

 private:
  absl::StatusOr<int> HomeOf(const ResolvedJob& job,
                             const BatchRequest& request) const {
    if (request.explicit_seeds.has_value()) {
      return static_cast<int>(request.batch % manifest_.parts());
    }
    MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> part_counts,
                              SplitPartCounts(job, manifest_));
    return SeedPlan(job.spec, std::move(part_counts))
        .HomeOf(request.epoch, request.batch);
  }

  void Forget(BatchFetch& fetch) {
    std::shared_ptr<BatchFetch> last = fetch.shared_from_this();
    absl::MutexLock lock(&mutex_);
    fetches_.erase(last);
  }

  // Runs `attempt(CallContext)` until it succeeds or Retry gives up.
  template <typename Attempt>
  absl::Status Repeat(Attempt attempt) {
    Retry retry(options_.partition_wait);
    const CallContext context{*fleet_, manifest_, options_.call_timeout, retry};
    while (true) {
      const absl::Status status = attempt(context);
      if (status.ok()) return status;
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      MILLRACE_ASSIGN_OR_RETURN(const absl::Duration wait,
                                retry.After(status, absl::Now()));
      if (closing_.WaitForNotificationWithTimeout(wait)) {
        return absl::CancelledError("the source was closed");
      }
    }
  }

  absl::Status GatherOnce(const CallContext& context, TypeIndex type,
                          NodeColumn column, std::span<const uint64_t> ids,
                          const Array& target);

  const RemoteOptions options_;
  const std::unique_ptr<Fleet> fleet_;
  const Manifest& manifest_;  // of fleet_
  absl::Notification closing_;
  absl::Mutex mutex_;
  std::set<std::shared_ptr<BatchFetch>> fetches_ ABSL_GUARDED_BY(mutex_);
};

absl::Status FleetBatchSource::GatherOnce(const CallContext& context,
                                          TypeIndex type, NodeColumn column,
                                          std::span<const uint64_t> ids,
                                          const Array& target) {
  const PartitionBook& book = manifest_.books[type];
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < book.node_count()) continue;
    return absl::InvalidArgumentError(
        StrCat("id ", ids[i], " at position ", i, " is out of range; ",
               manifest_.schema.node_types[type].name, " has ",
               book.node_count(), " nodes"));
  }
  RowRequest like;
  like.type = type;
  like.column = column;
  like.target = target;
  const auto count = static_cast<int64_t>(ids.size());
  const Array all = Array::Borrow(DType::kUint64, {count}, ids.data(), nullptr);
  CallGroup calls;
  for (RowRequest& request : SplitByOwner(book, all, count, -1, like)) {
    absl::StatusOr<std::shared_ptr<Call>> call =
        StartRowCall(context, std::move(request), calls.Add());
    if (!call.ok()) calls.Fail(call.status());
  }
  return calls.Wait();
}

absl::StatusOr<Array> FleetBatchSource::Gather(TypeIndex type,
                                               NodeColumn column,
                                               std::span<const uint64_t> ids) {
  const ColumnSpec spec = ColumnOf(manifest_.schema, type, column);
  if (!spec.present()) {
    return absl::FailedPreconditionError(
        StrCat("node type ", manifest_.schema.node_types[type].name,
               " has no such column"));
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(ids.size())};
  shape.insert(shape.end(), spec.row_shape.begin(), spec.row_shape.end());
  Array rows;
  MILLRACE_RETURN_IF_ERROR(Repeat([&](const CallContext& context) {
    rows = Array::Allocate(spec.dtype, shape);
    return GatherOnce(context, type, column, ids, rows);
  }));
  return rows;
}

absl::StatusOr<std::vector<uint64_t>> FleetBatchSource::Resolve(
    TypeIndex type, std::span<const int64_t> original_ids) {
  std::vector<uint64_t> ids(original_ids.size());
  MILLRACE_RETURN_IF_ERROR(
      Repeat([&](const CallContext& context) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(
            std::vector<ResolveRequest> requests,
            SplitByLookup(manifest_, type, original_ids, ids.data()));
        CallGroup calls;
        for (ResolveRequest& request : requests) {
          absl::StatusOr<std::shared_ptr<Call>> call =
              StartResolveCall(context, std::move(request), calls.Add());
          if (!call.ok()) calls.Fail(call.status());
        }
        return calls.Wait();
      }));
  return ids;
}

// Says now and then whom it waits for.
absl::StatusOr<const Manifest*> AwaitManifest(Fleet& fleet,
                                              absl::Time deadline) {
  while (true) {
    const absl::Time soon = absl::Now() + absl::Seconds(5);
    absl::StatusOr<const Manifest*> manifest =
        fleet.WaitForManifest(std::min(soon, deadline));
    if (manifest.ok() || absl::IsCancelled(manifest.status()) ||
        soon >= deadline) {
      return manifest;
    }
    spdlog::warn("{}; waiting for {}", FirstLine(manifest.status()),
                 absl::FormatDuration(
                     absl::Ceil(deadline - absl::Now(), absl::Seconds(1))));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteBatchSource>> RemoteBatchSource::Connect(
    const RemoteOptions& options) {
  FleetOptions fleet_options;
  fleet_options.list = options.servers;
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Fleet> fleet,
                            Fleet::Create(std::move(fleet_options)));
  MILLRACE_ASSIGN_OR_RETURN(
      const Manifest* manifest,
      AwaitManifest(*fleet, absl::Now() + options.partition_wait));
  return std::unique_ptr<RemoteBatchSource>(
      new FleetBatchSource(options, std::move(fleet), *manifest));
}

}  // namespace millrace
