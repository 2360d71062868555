// SPDX-License-Identifier: Apache-2.0
#include "client/remote_batch_source.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "client/remote/batch_fetch.h"
#include "client/remote/call_group.h"
#include "client/remote/feature_cache.h"
#include "client/remote/resolve_call.h"
#include "client/remote/retry.h"
#include "client/remote/row_call.h"
#include "common/base/check.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/base/thread_pool.h"
#include "common/grpc/call/call_timer.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/request_id.h"
#include "common/grpc/tls/tls.h"
#include "common/sample/gather.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/request_plan.h"
#include "common/sample/seeds/seed_schedule.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// How often waits check for an interrupt.
constexpr absl::Duration kInterruptCheckInterval = absl::Milliseconds(200);

// Threads that complete batches on a GPU: while it works for one of them, the
// other one prepares.
constexpr int kMovers = 2;
// Whoever fetches decides how many batches may wait for them.
constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max() / 2;

class FleetBatchSource final : public RemoteBatchSource {
 public:
  FleetBatchSource(const RemoteOptions& options, std::unique_ptr<Fleet> fleet,
                   const Manifest& manifest)
      : options_(options), fleet_(std::move(fleet)), manifest_(manifest) {
    if (options_.cache_ratio <= 0) return;
    cache_ = std::make_unique<FeatureCache>(
        manifest_, options_.cache_ratio,
        [this](std::vector<RowRequest> requests) {
          return RunCalls(std::move(requests), StartRowCall);
        },
        options_.device_cache);
    if (options_.device_cache == nullptr) return;
    movers_ = std::make_unique<ThreadPool>("movers", kMovers, kAnyNumber);
  }

  ~FleetBatchSource() override {
    closing_.Notify();
    if (cache_ != nullptr) cache_->Close();  // first, because it starts fetches
    std::vector<std::shared_ptr<BatchFetch>> fetches;
    {
      MutexLock lock(&mutex_);
      for (const auto& [number, fetch] : fetches_) fetches.push_back(fetch);
    }
    for (const std::shared_ptr<BatchFetch>& fetch : fetches) fetch->Cancel();
    fetches.clear();
    MutexLock lock(&mutex_);
    fetch_ended_.Wait(&mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return fetches_.empty();
    });
  }

  const Manifest& manifest() const override { return manifest_; }

  void Fetch(const ResolvedJob& job, BatchRequest request,
             BatchCallback done) override {
    const absl::Status possible =
        CheckColumns(request.columns, manifest_.schema);
    if (!possible.ok()) return done(possible);
    const absl::StatusOr<int> home = FindHome(job, request);
    if (!home.ok()) return done(home.status());
    if (!UsesCache(request)) {
      return Start(job, std::move(request), *home, nullptr, std::move(done));
    }
    const DType cast = request.columns.feature_dtype;
    cache_->Get(job, cast,
                [this, &job, home = *home, request = std::move(request),
                 done = std::move(done)](CacheOr features) mutable {
                  if (!features.ok()) return done(features.status());
                  Start(job, std::move(request), home, *std::move(features),
                        std::move(done));
                });
  }

  uint64_t received_bytes() const override { return received_; }
  int64_t calls() const override { return hedging_.calls(); }
  int64_t hedged_calls() const override { return hedging_.hedges(); }
  int64_t retries() const override { return retries_; }
  std::optional<CachedRowCounts> cached_rows() const override {
    if (cache_ == nullptr) return std::nullopt;
    return cache_->counts();
  }
  std::vector<KnownServer> servers() const override;

  absl::StatusOr<Array> Gather(TypeIndex type, NodeColumn column,
                               std::span<const uint64_t> ids) override;
  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override;

 private:
  using Cache = std::shared_ptr<const CachedFeatures>;
  using CacheOr = absl::StatusOr<Cache>;

  // Rows on a GPU serve only batches that go there.
  bool UsesCache(const BatchRequest& request) const {
    if (cache_ == nullptr || !request.columns.features) return false;
    if (options_.device_cache == nullptr) return true;
    return DeviceOf(request.memory.get()) == options_.device_cache->device();
  }

  void Start(const ResolvedJob& job, BatchRequest request, int home,
             Cache features, BatchCallback done) {
    const BatchFetch::Options options = {
        .fleet = *fleet_,
        .hedging = hedging_,
        .timer = timer_,
        .manifest = manifest_,
        .call_timeout = options_.call_timeout,
        .home = home,
        .partition_wait = options_.partition_wait,
        .max_batch_bytes = options_.max_batch_bytes,
        .received = received_,
        .retries = retries_,
        .cache = features,
        .request_id = request_ids_.OfBatch(request.epoch, request.batch),
        .trace_slow = options_.trace_slow};
    const uint64_t number = ++started_;
    // A fetch is forgotten only after `done` has run, so that the destructor
    // waits for that too.
    const auto fetch = std::make_shared<BatchFetch>(
        options, job, std::move(request),
        [this, number, features,
         done = std::move(done)](absl::StatusOr<Batch> batch) {
          if (batch.ok() && features != nullptr && !features->on_host()) {
            return MoveToDevice(number, features, *std::move(batch), done);
          }
          done(std::move(batch));
          Forget(number);
        });
    {
      MutexLock lock(&mutex_);
      fetches_.emplace(number, fetch);
    }
    fetch->Start();
  }

  absl::StatusOr<int> FindHome(const ResolvedJob& job,
                               const BatchRequest& request) const {
    if (request.explicit_seeds.has_value()) {
      return static_cast<int>(request.batch % manifest_.partition_count());
    }
    MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> part_counts,
                              SplitPartCounts(job, manifest_));
    return SeedSchedule(job.spec, std::move(part_counts))
        .FindHome(request.epoch, request.batch);
  }

  // Ends a fetch on a thread that may wait for the GPU.
  void MoveToDevice(uint64_t number, Cache features, Batch batch,
                    BatchCallback done) {
    auto move = [this, number, features = std::move(features),
                 batch = std::move(batch), done = std::move(done)]() mutable {
      const absl::Status moved = features->MoveToDevice(batch);
      done(moved.ok() ? absl::StatusOr<Batch>(std::move(batch)) : moved);
      Forget(number);
    };
    // Forget() waits for this lock, so that the threads do not end before.
    MutexLock lock(&mutex_);
    MILLRACE_CHECK(movers_->TrySubmit(std::move(move)));
  }

  // Called by the fetch, which keeps itself alive meanwhile.
  void Forget(uint64_t number) {
    MutexLock lock(&mutex_);
    fetches_.erase(number);
    fetch_ended_.NotifyOne();
  }

  // Starts a call for each request, and repeats failed ones until they succeed
  // or Retry gives up.
  template <typename Request, typename StartCall>
  absl::Status RunCalls(std::vector<Request> requests, StartCall start_call) {
    Retry retry(options_.partition_wait);
    Refusals refusals;
    const std::string request_id = request_ids_.Of("rows");
    const LogRequest logged(request_id);
    const CallContext context{.fleet = *fleet_,
                              .manifest = manifest_,
                              .timeout = options_.call_timeout,
                              .retry = retry,
                              .refusals = refusals,
                              .hedging = hedging_,
                              .timer = timer_,
                              .received = received_,
                              .request_id = request_id};
    while (true) {
      MILLRACE_RETURN_IF_ERROR(CheckOpen());
      const absl::Status status = RunOnce(context, requests, start_call);
      if (status.ok()) return status;
      MILLRACE_RETURN_IF_ERROR(CheckOpen());
      MILLRACE_ASSIGN_OR_RETURN(const absl::Duration wait,
                                retry.After(status, SteadyNow()));
      ++retries_;
      MILLRACE_RETURN_IF_ERROR(Pause(wait));
    }
  }

  // Starts a call for each request and waits for all. Leaves the requests that
  // failed, and returns the error of CallGroup::Wait.
  template <typename Request, typename StartCall>
  absl::Status RunOnce(const CallContext& context,
                       std::vector<Request>& requests, StartCall start_call) {
    CallGroup calls(closing_);
    for (const Request& request : requests) {
      calls.Add([&](CallDone done) {
        return start_call(context, request, std::move(done));
      });
    }
    const absl::Status status = calls.Wait();
    std::vector<Request> failed;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (!calls.succeeded(i)) failed.push_back(std::move(requests[i]));
    }
    requests = std::move(failed);
    return status;
  }

  // CANCELLED: the source was closed or the program interrupted.
  absl::Status CheckOpen() const {
    if (closing_.HasBeenNotified()) {
      return absl::CancelledError("the source was closed");
    }
    return CheckInterrupted();
  }

  // Sleeps. Fails like CheckOpen().
  absl::Status Pause(absl::Duration wait) const {
    const SteadyTime end = SteadyNow() + wait;
    while (SteadyNow() < end) {
      closing_.WaitForNotificationWithTimeout(
          std::min(end - SteadyNow(), kInterruptCheckInterval));
      MILLRACE_RETURN_IF_ERROR(CheckOpen());
    }
    return absl::OkStatus();
  }

  const RemoteOptions options_;
  const std::unique_ptr<Fleet> fleet_;
  const Manifest& manifest_;  // owned by fleet_
  CallTimer timer_;
  Hedging hedging_;
  RequestIds request_ids_;
  std::atomic<uint64_t> received_ = 0;
  std::atomic<int64_t> retries_ = 0;
  std::atomic<uint64_t> started_ = 0;    // number of fetches
  std::unique_ptr<FeatureCache> cache_;  // null if the ratio is 0
  // Complete batches on a GPU; null if the cache is on the host.
  std::unique_ptr<ThreadPool> movers_;
  Notification closing_;
  Mutex mutex_;
  CondVar fetch_ended_;
  // The fetches in progress, by number; shared with their calls.
  std::map<uint64_t, std::shared_ptr<BatchFetch>> fetches_
      ABSL_GUARDED_BY(mutex_);
};

std::vector<KnownServer> FleetBatchSource::servers() const {
  std::vector<KnownServer> servers;
  for (FleetMemberInfo& member : fleet_->Members()) {
    servers.push_back({.address = std::move(member.address),
                       .state = std::string(StateName(member.state)),
                       .partitions = std::move(member.partitions),
                       .version = std::move(member.version),
                       .error = FirstLine(member.error)});
  }
  return servers;
}

absl::StatusOr<Array> FleetBatchSource::Gather(TypeIndex type,
                                               NodeColumn column,
                                               std::span<const uint64_t> ids) {
  const NodeType& nodes = manifest_.schema.node_types[type];
  const PartitionBook& book = manifest_.books[type];
  const ColumnSpec spec = ColumnOf(manifest_.schema, type, column);
  if (!spec.present()) {
    return absl::FailedPreconditionError(
        StrCat("node type ", nodes.name, " has no ", ColumnName(column)));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < book.node_count()) continue;
    return absl::InvalidArgumentError(
        StrCat("id ", ids[i], " at position ", i, " is out of range; ",
               nodes.name, " has ", book.node_count(), " nodes"));
  }
  const auto count = static_cast<int64_t>(ids.size());
  const Array all = Array::Borrow(DType::kUint64, {count}, ids.data(), nullptr);
  RowRequest prototype;
  prototype.type = type;
  prototype.column = column;
  prototype.target = Array::Allocate(spec.dtype, spec.ShapeOf(count));
  MILLRACE_RETURN_IF_ERROR(
      RunCalls(SplitByOwner(OwnersOf(book, all, count), book.partition_count(),
                            all, prototype),
               StartRowCall));
  return prototype.target;
}

absl::StatusOr<std::vector<uint64_t>> FleetBatchSource::Resolve(
    TypeIndex type, std::span<const int64_t> original_ids) {
  std::vector<uint64_t> ids(original_ids.size());
  MILLRACE_ASSIGN_OR_RETURN(
      std::vector<ResolveRequest> requests,
      SplitByLookup(manifest_, type, original_ids, ids.data()));
  MILLRACE_RETURN_IF_ERROR(RunCalls(std::move(requests), StartResolveCall));
  return ids;
}

// Waits for servers that do not answer, and logs every few seconds which ones.
// Returns any other error at once.
absl::StatusOr<const Manifest*> AwaitManifest(Fleet& fleet,
                                              SteadyTime deadline) {
  while (true) {
    const SteadyTime soon = SteadyNow() + absl::Seconds(5);
    absl::StatusOr<const Manifest*> manifest =
        fleet.WaitForManifest(std::min(soon, deadline));
    if (!absl::IsUnavailable(manifest.status()) || soon >= deadline) {
      return manifest;
    }
    LogWarning(
        LogComponent::kLoader,
        StrCat("waiting for servers", AdviceOf(manifest.status())),
        {{"seconds_left", absl::ToInt64Seconds(absl::Ceil(
                              deadline - SteadyNow(), absl::Seconds(1)))},
         {"error", FirstLine(manifest.status())}});
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteBatchSource>> RemoteBatchSource::Connect(
    const RemoteOptions& options) {
  if (!(options.cache_ratio >= 0 && options.cache_ratio <= 1)) {
    return InvalidField({.problem = FieldError::Problem::kOutOfRange,
                         .field = "cache_ratio",
                         .value = StrCat(options.cache_ratio),
                         .limit = "0 to 1, a share of the rows"});
  }
  FleetOptions fleet_options;
  fleet_options.list = options.servers;
  MILLRACE_ASSIGN_OR_RETURN(fleet_options.tls, OpenClientTls(options.tls));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Fleet> fleet,
                            Fleet::Create(std::move(fleet_options)));
  MILLRACE_ASSIGN_OR_RETURN(
      const Manifest* manifest,
      AwaitManifest(*fleet, SteadyNow() + options.partition_wait));
  return std::unique_ptr<RemoteBatchSource>(
      new FleetBatchSource(options, std::move(fleet), *manifest));
}

}  // namespace millrace
