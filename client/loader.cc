// SPDX-License-Identifier: Apache-2.0
#include "client/loader.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/bytes_text.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/interrupt.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/sample/resolve_job.h"
#include "common/sample/seeds/request_plan.h"

namespace millrace {
namespace {

// Batches requested before the size of any is known.
constexpr int kUnmeasuredBatches = 4;

// One fetch of the window. Shared by the loader and the source's callback,
// which may run after the loader is gone.
struct Slot {
  LoaderStep step;
  Mutex mutex;
  CondVar arrived;
  bool ready ABSL_GUARDED_BY(mutex) = false;
  absl::StatusOr<Batch> batch ABSL_GUARDED_BY(mutex) = Batch();
};

class StepSequence {
 public:
  StepSequence(const LoaderOptions& options, uint32_t batches,
               bool drop_incomplete_step)
      : world_(static_cast<uint32_t>(options.world)),
        batches_(batches),
        drop_incomplete_step_(drop_incomplete_step),
        epoch_(options.first_epoch),
        end_epoch_(uint64_t{options.first_epoch} + options.epochs),
        begin_batch_(options.first_batch) {}

  // Number of steps of an epoch from `batch` on.
  uint32_t StepsFrom(uint32_t batch) const {
    if (batch >= batches_) return 0;
    const uint32_t left = batches_ - batch;
    return drop_incomplete_step_ ? left / world_ : (left - 1) / world_ + 1;
  }

  uint64_t Remaining() const {
    if (epoch_ >= end_epoch_) return 0;
    return StepsFrom(begin_batch_) - step_ +
           (end_epoch_ - epoch_ - 1) * StepsFrom(0);
  }

  // The next step, still without its batch, and the first batch of all its
  // ranks.
  struct Planned {
    LoaderStep step;
    uint64_t first_batch;
  };
  std::optional<Planned> Next() {
    while (epoch_ < end_epoch_ && step_ >= StepsFrom(begin_batch_)) {
      ++epoch_;
      step_ = 0;
      begin_batch_ = 0;
      if (StepsFrom(0) == 0) epoch_ = end_epoch_;
    }
    if (epoch_ >= end_epoch_) return std::nullopt;
    Planned planned;
    planned.first_batch = begin_batch_ + uint64_t{step_} * world_;
    planned.step.epoch = epoch_;
    planned.step.step = step_;
    planned.step.next_batch = static_cast<uint32_t>(
        std::min<uint64_t>(planned.first_batch + world_, batches_));
    planned.step.last_of_epoch = step_ + 1 == StepsFrom(begin_batch_);
    ++step_;
    return planned;
  }

 private:
  const uint32_t world_;
  const uint32_t batches_;
  const bool drop_incomplete_step_;
  uint64_t epoch_;
  const uint64_t end_epoch_;
  uint32_t begin_batch_;
  uint32_t step_ = 0;
};

class PrefetchingLoader final : public Loader {
 public:
  PrefetchingLoader(std::shared_ptr<BatchSource> source, ResolvedJob job,
                    RequestPlan plan, const LoaderOptions& options)
      : source_(std::move(source)),
        job_(std::make_shared<const ResolvedJob>(std::move(job))),
        plan_(std::move(plan)),
        options_(options),
        sequence_(options, plan_.batch_count(), job_->spec.drop_last) {}

  absl::StatusOr<std::optional<LoaderStep>> Next() override {
    MILLRACE_RETURN_IF_ERROR(failed_);
    absl::StatusOr<std::optional<LoaderStep>> step = Take();
    failed_ = step.status();
    return step;
  }

  bool ready() const override {
    if (!failed_.ok()) return true;
    if (window_.empty()) return sequence_.Remaining() == 0;
    Slot& slot = *window_.front();
    MutexLock lock(&slot.mutex);
    return slot.ready;
  }

  int batches_waiting() const override {
    return static_cast<int>(
        std::count_if(window_.begin(), window_.end(), [](const auto& slot) {
          MutexLock lock(&slot->mutex);
          return slot->ready && HasBatch(*slot);
        }));
  }

  uint32_t batches_per_epoch() const override { return plan_.batch_count(); }
  uint32_t steps_per_epoch() const override { return sequence_.StepsFrom(0); }
  uint32_t steps_of_first_epoch() const override {
    return sequence_.StepsFrom(options_.first_batch);
  }
  int64_t seeds_per_epoch() const override { return plan_.seed_count(); }
  absl::Duration waited() const override { return waited_; }

 private:
  static bool HasBatch(const Slot& slot) { return slot.step.batch.has_value(); }

  // Takes the next step out of the window, and fills its place.
  absl::StatusOr<std::optional<LoaderStep>> Take() {
    MILLRACE_RETURN_IF_ERROR(Refill());
    if (window_.empty()) return std::optional<LoaderStep>();
    const std::shared_ptr<Slot> slot = window_.front();
    const SteadyTime start = SteadyNow();
    LoaderStep step = slot->step;
    {
      MutexLock lock(&slot->mutex);
      const auto ready = [&slot]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(slot->mutex) {
        return slot->ready;
      };
      // Waits in slices, so that Ctrl-C ends the wait.
      while (!slot->arrived.WaitFor(&slot->mutex, absl::Milliseconds(200),
                                    ready)) {
        MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      }
      waited_ += SteadyNow() - start;
      if (!slot->batch.ok()) return slot->batch.status();
      if (HasBatch(*slot)) {
        MILLRACE_RETURN_IF_ERROR(
            RememberBytes(static_cast<int64_t>(slot->batch->total_bytes())));
        step.batch = *std::move(slot->batch);
      }
    }
    window_.pop_front();
    // Fills the place of this step while the caller works on it.
    MILLRACE_RETURN_IF_ERROR(Refill());
    return step;
  }

  // Whether one more batch fits into the window, judging by the mean size of
  // the batches seen so far.
  bool HasRoom() const {
    const auto size = static_cast<int64_t>(window_.size());
    if (size == 0) return true;
    const int most = mean_bytes_ == 0 ? std::min(options_.prefetch_batches,
                                                 kUnmeasuredBatches)
                                      : options_.prefetch_batches;
    return size < most && (size + 1) * mean_bytes_ <= options_.prefetch_bytes;
  }

  absl::Status Refill() {
    while (HasRoom()) {
      std::optional<StepSequence::Planned> planned = sequence_.Next();
      if (!planned.has_value()) return absl::OkStatus();
      MILLRACE_RETURN_IF_ERROR(Start(*std::move(planned)));
    }
    return absl::OkStatus();
  }

  absl::Status Start(StepSequence::Planned planned) {
    auto slot = std::make_shared<Slot>();
    slot->step = std::move(planned.step);
    const uint64_t index =
        planned.first_batch + static_cast<uint64_t>(options_.rank);
    if (index >= plan_.batch_count()) {
      MutexLock lock(&slot->mutex);
      slot->ready = true;
      window_.push_back(std::move(slot));
      return absl::OkStatus();
    }
    slot->step.batch.emplace();  // marks that a batch is due
    MILLRACE_ASSIGN_OR_RETURN(
        BatchRequest request,
        plan_.Request(slot->step.epoch, static_cast<uint32_t>(index),
                      options_.columns));
    request.memory = options_.memory;
    window_.push_back(slot);
    // The callback keeps `job` alive.
    source_->Fetch(*job_, std::move(request),
                   [slot, job = job_](absl::StatusOr<Batch> batch) {
                     MutexLock lock(&slot->mutex);
                     slot->batch = std::move(batch);
                     slot->ready = true;
                     slot->arrived.NotifyOne();
                   });
    return absl::OkStatus();
  }

  absl::Status RememberBytes(int64_t bytes) {
    const bool first = mean_bytes_ == 0;
    mean_bytes_ = first ? bytes : (7 * mean_bytes_ + bytes) / 8;
    return first ? CheckWindow() : absl::OkStatus();
  }

  // Checks that a full window fits in memory. RESOURCE_EXHAUSTED: it does not.
  absl::Status CheckWindow() const {
    const uint64_t more =
        static_cast<uint64_t>(options_.prefetch_batches) - window_.size();
    const auto batches =
        static_cast<int64_t>(std::min(more, sequence_.Remaining()));
    return CheckMemory(
        StrCat("prefetching ", options_.prefetch_batches, " batches of ",
               BytesText(static_cast<double>(mean_bytes_)), " each"),
        std::min(SaturatedProduct({batches, mean_bytes_}),
                 static_cast<uint64_t>(options_.prefetch_bytes)),
        "prefetch fewer batches or bytes, or use a smaller batch size");
  }

  const std::shared_ptr<BatchSource> source_;     // shared with other loaders
  const std::shared_ptr<const ResolvedJob> job_;  // shared with callbacks
  const RequestPlan plan_;
  const LoaderOptions options_;
  StepSequence sequence_;
  std::deque<std::shared_ptr<Slot>> window_;
  int64_t mean_bytes_ = 0;
  absl::Duration waited_;
  absl::Status failed_;  // the first error of Next()
};

absl::Status CheckOptions(const LoaderOptions& options) {
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    return absl::InvalidArgumentError(
        StrCat("rank ", options.rank, " is not in a world of ", options.world,
               "; ranks go from 0 to world size - 1"));
  }
  const auto at_least_one = [](const char* field, int64_t value) {
    return value >= 1
               ? absl::OkStatus()
               : InvalidField({.problem = FieldError::Problem::kOutOfRange,
                               .field = field,
                               .value = StrCat(value),
                               .limit = "at least 1"});
  };
  MILLRACE_RETURN_IF_ERROR(
      at_least_one("prefetch_batches", options.prefetch_batches));
  MILLRACE_RETURN_IF_ERROR(
      at_least_one("prefetch_bytes", options.prefetch_bytes));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Loader>> Loader::Create(
    std::shared_ptr<BatchSource> source, const JobSpec& job,
    LoaderOptions options) {
  MILLRACE_RETURN_IF_ERROR(CheckOptions(options));
  MILLRACE_ASSIGN_OR_RETURN(ResolvedJob resolved,
                            ResolveJob(job, source->manifest()));
  std::vector<ExplicitSeeds> lists = std::exchange(options.epoch_seeds, {});
  if (!lists.empty() &&
      uint64_t{options.first_epoch} + options.epochs > lists.size()) {
    return absl::InvalidArgumentError(StrCat(
        "there are seeds for ", lists.size(), " epochs, but epochs up to ",
        uint64_t{options.first_epoch} + options.epochs - 1, " are requested"));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      RequestPlan plan,
      lists.empty()
          ? RequestPlan::Create(resolved, source->manifest(),
                                std::exchange(options.seeds, std::nullopt))
          : RequestPlan::OfLists(resolved, std::move(lists)));
  return std::unique_ptr<Loader>(new PrefetchingLoader(
      std::move(source), std::move(resolved), std::move(plan), options));
}

}  // namespace millrace
