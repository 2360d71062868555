// SPDX-License-Identifier: Apache-2.0
#include "client/train/trainer.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "client/tensor/torch_status.h"
#include "client/train/minibatch.h"
#include "client/train/prediction.h"
#include "client/train/train_check.h"
#include "common/base/interrupt.h"
#include "common/base/process_usage.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/sample/digest.h"

namespace millrace {
namespace {

std::optional<double> MeanLoss(const StepSums& sums) {
  if (sums.labelled == 0) return std::nullopt;
  return sums.loss / static_cast<double>(sums.labelled);
}

}  // namespace

// Adds up the parts of an epoch's training on this rank.
struct Trainer::Clock {
  double cpu_at_start = ProcessCpuSeconds();
  SteadyTime start = SteadyNow();
  SteadyTime mark = start;
  absl::Duration wait, copy, compute;

  // Books the time since the last lap.
  void Lap(absl::Duration& part) {
    const SteadyTime now = SteadyNow();
    part += now - mark;
    mark = now;
  }
};

Trainer::Trainer(std::shared_ptr<BatchSource> source, Collectives& collectives,
                 TrainOptions options)
    : source_(std::move(source)),
      collectives_(collectives),
      options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    std::shared_ptr<BatchSource> source, Collectives& collectives,
    TrainOptions options) {
  auto trainer = std::unique_ptr<Trainer>(
      new Trainer(std::move(source), collectives, std::move(options)));
  MILLRACE_RETURN_IF_ERROR(trainer->SetUp());
  return trainer;
}

absl::StatusOr<std::unique_ptr<Loader>> Trainer::MakeLoader() const {
  LoaderOptions options;
  options.rank = collectives_.rank();
  options.world = collectives_.world();
  options.first_epoch = at_.epoch;
  options.first_batch = at_.next_batch;
  options.epochs = options_.epochs - at_.epoch;
  options.prefetch_batches = options_.prefetch_batches;
  options.prefetch_bytes = options_.prefetch_bytes;
  options.seeds = options_.seeds;
  if (order_.has_value() && order_->epochs.size() == 1) {
    options.seeds = order_->epochs[0];
  } else if (order_.has_value()) {
    options.epoch_seeds = order_->epochs;
  }
  if (!options_.consumed_log.empty()) {
    options.columns = DigestColumns(/*features=*/true, false);
  } else {
    options.columns.feature_dtype = options_.feature_dtype;
  }
  AskForColumns(*model_, options.columns);
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<Loader> loader,
      Loader::Create(source_, options_.job, std::move(options)));
  if (loader->steps_per_epoch() == 0) {
    return absl::FailedPreconditionError(StrCat(
        "an epoch has no step: the split has ", loader->seeds_per_epoch(),
        " seeds\nuse a smaller --batch-size, fewer trainers, or leave out "
        "--drop-last"));
  }
  return loader;
}

absl::Status Trainer::LogConsumed(const Batch& batch) {
  if (!consumed_.has_value()) return absl::OkStatus();
  const auto seeds = batch.seed.As<int64_t>();
  std::vector<int64_t> dst;
  if (batch.seed_kind == SeedKind::kEdge) {
    const auto ids = batch.edge_seeds.dst.As<int64_t>();
    dst.assign(ids.begin(), ids.end());
  }
  return consumed_->Write(ConsumedLine(
      {.attempt = at_.attempt,
       .checkpoint = at_.started_from,
       .epoch = batch.epoch,
       .batch = batch.index,
       .rank = collectives_.rank(),
       .seeds = {seeds.begin(), seeds.end()},
       .dst = std::move(dst),
       .digest = Hex(DigestBatch(batch, source_->manifest().schema))}));
}

absl::Status Trainer::LogStep(const LoaderStep& step, const StepSums& sums) {
  if (progress_ != nullptr) {
    if (const auto loss = MeanLoss(sums)) {
      progress_->SetNote(absl::StrFormat("loss %.4f", *loss));
    }
    progress_->Add(1);
  }
  if (options_.log_every == 0 || at_.step % options_.log_every != 0) {
    return absl::OkStatus();
  }
  MetricsRecord record;
  record.epoch = step.epoch;
  record.step = at_.step;
  record.loss = MeanLoss(sums);
  history_.push_back(record);
  return metrics_.has_value() ? metrics_->Write(MetricsLine(record))
                              : absl::OkStatus();
}

absl::Status Trainer::TrainOnStep(const LoaderStep& step, Clock& clock) {
  // Before the step, which ends only when every rank has come to it: so the
  // lines of all ranks are written before a checkpoint can say that they count.
  if (step.batch.has_value()) {
    MILLRACE_RETURN_IF_ERROR(LogConsumed(*step.batch));
  }
  clock.mark = SteadyNow();
  std::optional<Minibatch> minibatch;
  DropoutKey dropout{options_.job.seed, step.epoch, 0};
  if (step.batch.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(
        minibatch, MakeMinibatch(*step.batch, *model_, options_.task));
    dropout.batch = step.batch->index;
  }
  clock.Lap(clock.copy);
  MILLRACE_ASSIGN_OR_RETURN(
      const StepSums sums,
      step_->Run(minibatch.has_value() ? &*minibatch : nullptr, dropout));
  if (!std::isfinite(sums.loss)) {
    return absl::OutOfRangeError(
        StrCat("the loss of epoch ", step.epoch, ", step ", at_.step + 1,
               " is not finite\nuse a smaller --lr, another --norm, or "
               "normalize the features at the import"));
  }
  if (sums.labelled > 0) {
    MILLRACE_RETURN_IF_ERROR(CatchTorch("an optimizer step", [&] {
      optimizer_->Step(step_->gradient(), learning_rate_->At(step.epoch));
      return absl::OkStatus();
    }));
  }
  evaluated_ = false;
  at_.next_batch = step.next_batch;
  ++at_.step;
  at_.sums.loss += sums.loss;
  at_.sums.labelled += sums.labelled;
  at_.sums.correct += sums.correct;
  clock.Lap(clock.compute);
  return LogStep(step, sums);
}

absl::Status Trainer::TrainEpoch(Loader& loader, uint32_t steps) {
  if (leader()) {
    progress_ = std::make_unique<Progress>(StrCat("epoch ", at_.epoch),
                                           at_.step + steps, "steps");
    progress_->StartAt(at_.step);
  }
  Clock clock;
  for (uint32_t i = 0; i < steps; ++i) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (writer_ != nullptr) {
      MILLRACE_RETURN_IF_ERROR(writer_->status());
    }
    clock.mark = SteadyNow();
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<LoaderStep> step,
                              loader.Next());
    clock.Lap(clock.wait);
    if (!step.has_value() || step->epoch != at_.epoch) {
      return absl::InternalError("the plan ended within an epoch");
    }
    MILLRACE_RETURN_IF_ERROR(TrainOnStep(*step, clock));
    if (step->last_of_epoch) break;
    if (options_.checkpoint_every > 0 &&
        at_.step % options_.checkpoint_every == 0) {
      MILLRACE_RETURN_IF_ERROR(Save(/*best=*/false));
    }
  }
  progress_.reset();
  return EndEpoch(clock);
}

absl::Status Trainer::Evaluate(MetricsRecord& record) {
  const SteadyTime start = SteadyNow();
  MILLRACE_ASSIGN_OR_RETURN(record.accuracy, evaluator_->Run());
  record.eval_seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  evaluated_ = true;
  if (!record.accuracy.train.has_value() && at_.sums.labelled > 0 &&
      options_.task.metric == MetricKind::kAccuracy) {
    record.accuracy.train = static_cast<double>(at_.sums.correct) /
                            static_cast<double>(at_.sums.labelled);
  }
  const std::optional<double> valid = record.accuracy.valid;
  if (valid.has_value() && at_.best_valid.has_value() &&
      !options_.task.Better(*valid, *at_.best_valid)) {
    ++at_.since_best;
    new_best_ = false;
    return absl::OkStatus();
  }
  new_best_ = true;
  at_.since_best = 0;
  at_.best_epoch = record.epoch;
  at_.best_valid = valid;
  at_.train_at_best = record.accuracy.train;
  at_.test_at_best = record.accuracy.test;
  return absl::OkStatus();
}

absl::Status Trainer::EndEpoch(Clock& clock) {
  MILLRACE_RETURN_IF_ERROR(step_->AverageBuffers());
  MetricsRecord record;
  record.epoch = at_.epoch;
  record.step = at_.step;
  record.loss = MeanLoss(at_.sums);
  record.seconds = absl::ToDoubleSeconds(SteadyNow() - clock.start);
  record.wait_seconds = absl::ToDoubleSeconds(clock.wait);
  record.copy_seconds = absl::ToDoubleSeconds(clock.copy);
  record.compute_seconds = absl::ToDoubleSeconds(clock.compute);
  at::Tensor cpu = at::empty({1}, at::kDouble);
  cpu.fill_(ProcessCpuSeconds() - clock.cpu_at_start);
  MILLRACE_RETURN_IF_ERROR(collectives_.AllReduceSum(cpu));
  record.cpu_seconds = cpu.item().toDouble();
  // From here on a checkpoint starts the next epoch.
  ++at_.epoch;
  at_.next_batch = 0;
  at_.step = 0;
  const bool due =
      at_.epoch == options_.epochs ||
      (options_.eval_every > 0 && at_.epoch % options_.eval_every == 0);
  if (due) {
    MILLRACE_RETURN_IF_ERROR(Evaluate(record));
  }
  at_.sums = {};
  if (!options_.checkpoint.empty()) {
    MILLRACE_RETURN_IF_ERROR(Save(due && new_best_ && options_.keep_best));
  }
  return Report(record);
}

absl::Status Trainer::Report(const MetricsRecord& record) {
  history_.push_back(record);
  if (!leader()) return absl::OkStatus();
  std::printf("%s\n", EpochLine(record).c_str());
  std::fflush(stdout);
  return metrics_.has_value() ? metrics_->Write(MetricsLine(record))
                              : absl::OkStatus();
}

bool Trainer::OutOfPatience() const {
  return options_.patience > 0 && at_.since_best >= options_.patience;
}

absl::Status Trainer::Run() {
  absl::Status done = TrainAndEvaluate();
  if (writer_ == nullptr) return done;
  // A run that ends early needs its last checkpoints as well.
  absl::Status written = writer_->Finish();
  const bool tell = done.ok() || absl::IsCancelled(done);
  return tell && !written.ok() ? written : done;
}

absl::Status Trainer::TrainAndEvaluate() {
  if (at_.epoch < options_.epochs && !OutOfPatience()) {
    MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                              MakeLoader());
    // None when a resumed epoch has no whole step left for this world.
    uint32_t steps = loader->steps_of_first_epoch();
    while (at_.epoch < options_.epochs && !OutOfPatience()) {
      MILLRACE_RETURN_IF_ERROR(TrainEpoch(*loader, steps));
      steps = loader->steps_per_epoch();
    }
  }
  return EndRun();
}

absl::Status Trainer::EndRun() {
  MetricsRecord record;
  record.epoch = at_.epoch;
  if (!evaluated_) {
    // Evaluation alone; epochs that ran have evaluated after the last.
    const Progression before = at_;
    MILLRACE_RETURN_IF_ERROR(Evaluate(record));
    at_ = before;
    MILLRACE_RETURN_IF_ERROR(Report(record));
  }
  if (!options_.predict.empty()) {
    MILLRACE_RETURN_IF_ERROR(WritePrediction());
  }
  if (writer_ != nullptr) {
    MILLRACE_RETURN_IF_ERROR(writer_->Finish());
  }
  if (!leader() || !at_.best_valid.has_value()) return absl::OkStatus();
  record.accuracy = {at_.train_at_best, at_.best_valid, at_.test_at_best};
  record.best_epoch = at_.best_epoch;
  std::string line = absl::StrFormat("best epoch %u  valid %.4f",
                                     at_.best_epoch, *at_.best_valid);
  if (at_.test_at_best.has_value()) {
    absl::StrAppendFormat(&line, "  test %.4f", *at_.test_at_best);
  }
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  return metrics_.has_value() ? metrics_->Write(MetricsLine(record))
                              : absl::OkStatus();
}

absl::Status Trainer::WritePrediction() {
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor rows,
                            evaluator_->Predict(options_.predict_embeddings));
  return leader() ? WriteMatrix(options_.predict, rows) : absl::OkStatus();
}

}  // namespace millrace
