// SPDX-License-Identifier: Apache-2.0
#include "client/train/trainer.h"

#include <ATen/ops/full.h>

#include <cmath>
#include <optional>
#include <utility>

#include "client/loader.h"
#include "client/tensor/torch_status.h"
#include "client/train/checkpoint_identity.h"
#include "client/train/device/device_work.h"
#include "client/train/epoch_clock.h"
#include "client/train/eval/prediction.h"
#include "client/train/minibatch_feeder.h"
#include "client/train/run_setup.h"
#include "client/train/task/minibatch.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/digest.h"

namespace millrace {
namespace {

absl::StatusOr<double> SumOfCpuSeconds(double own, Collectives& collectives) {
  return CatchTorch("adding up CPU times", [&]() -> absl::StatusOr<double> {
    const at::Tensor sum = at::full({1}, own, at::kDouble);
    MILLRACE_RETURN_IF_ERROR(collectives.AllReduceSum(sum));
    return sum.item().toDouble();
  });
}

}  // namespace

Trainer::Trainer(RunParts run, Collectives& collectives)
    : collectives_(collectives),
      run_(std::make_unique<RunParts>(std::move(run))),
      state_(run_->state),
      options_(run_->plan->options) {}

Trainer::~Trainer() = default;

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    std::shared_ptr<BatchSource> source, Collectives& collectives,
    TrainOptions options, Accelerator& accelerator,
    std::shared_ptr<RunMonitor> monitor) {
  const bool watched = monitor != nullptr;
  if (!watched) monitor = std::make_shared<RunMonitor>();
  MILLRACE_ASSIGN_OR_RETURN(
      RunParts run, SetUpRun(std::move(source), collectives, std::move(options),
                             accelerator, std::move(monitor)));
  run.watched = watched;
  return std::unique_ptr<Trainer>(new Trainer(std::move(run), collectives));
}

Model& Trainer::model() { return run_->learner->model(); }

const std::vector<MetricsRecord>& Trainer::history() const {
  return run_->logs->history();
}

absl::StatusOr<std::unique_ptr<Loader>> Trainer::MakeLoader() const {
  LoaderOptions options;
  options.rank = collectives_.rank();
  options.world = collectives_.world();
  options.first_epoch = state_.epoch;
  options.first_batch = state_.next_batch;
  options.epochs = options_.epochs - state_.epoch;
  options.prefetch_batches = options_.prefetch_batches;
  options.prefetch_bytes = options_.prefetch_bytes;
  options.seeds = options_.seeds;
  const std::optional<TrainingOrder>& order = run_->inputs.order;
  if (order.has_value() && order->epochs.size() == 1) {
    options.seeds = order->epochs[0];
  } else if (order.has_value()) {
    options.epoch_seeds = order->epochs;
  }
  if (!options_.consumed_log.empty()) {
    options.columns = DigestColumns(/*features=*/true, false);
  } else {
    options.columns.feature_dtype = options_.feature_dtype;
    // Digests are computed on the host.
    options.memory = run_->memory;
  }
  AskForColumns(run_->learner->model(), options.columns);
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<Loader> loader,
      Loader::Create(run_->source, options_.job, std::move(options)));
  if (loader->steps_per_epoch() == 0) {
    return WithReason(absl::FailedPreconditionError(
                          StrCat("an epoch has no step: the split has ",
                                 loader->seeds_per_epoch(), " seeds")),
                      Reason{"epoch_without_steps"});
  }
  return loader;
}

absl::Status Trainer::TrainOnStep(const FedStep& fed, MinibatchFeeder& feeder,
                                  EpochClock& clock) {
  const LoaderStep& step = fed.step;
  const bool some = step.batch.has_value();
  // Logs before the step, which ends only after every rank has reached it. So
  // the lines of all ranks are written before a checkpoint counts them.
  if (some) {
    MILLRACE_RETURN_IF_ERROR(run_->logs->LogConsumed(
        *step.batch, run_->source->manifest().schema, state_));
  }
  const DropoutKey dropout{options_.job.seed, step.epoch,
                           some ? step.batch->index : 0};
  DeviceWork work(model().device());  // ends before the batch's memory does
  clock.compute.Start();
  MILLRACE_ASSIGN_OR_RETURN(
      const StepSums sums,
      run_->learner->Step(some ? &*fed.minibatch : nullptr, dropout,
                          run_->plan->learning_rate.At(step.epoch), [&] {
                            // The device may run out of work meanwhile.
                            clock.compute.Stop();
                            feeder.CopyAhead();
                            clock.compute.Start();
                          }));
  clock.compute.Stop();
  work.End();
  if (!std::isfinite(sums.loss)) {
    const bool exact = model().config().precision == Precision::kFloat32;
    return WithReason(
        absl::OutOfRangeError(StrCat("the loss of epoch ", step.epoch,
                                     ", step ", state_.step + 1,
                                     " is not finite")),
        exact ? Reason{"loss_not_finite"} : Reason{"loss_not_finite_in_bf16"});
  }
  evaluated_ = false;
  state_.next_batch = step.next_batch;
  ++state_.step;
  state_.sums.loss += sums.loss;
  state_.sums.labelled += sums.labelled;
  state_.sums.correct += sums.correct;
  ReportStep(fed, sums, feeder, clock);
  return run_->logs->LogStep(state_, sums);
}

void Trainer::ReportStep(const FedStep& fed, const StepSums& sums,
                         const MinibatchFeeder& feeder, EpochClock& clock) {
  if (!run_->watched) return;  // finding all this out takes time
  run_->monitor->NoteStep(
      {.epoch = state_.epoch,
       .step = state_.step,
       .epoch_steps = feeder.loader().steps_per_epoch(),
       .loss = MeanLoss(sums),
       .has_batch = fed.minibatch.has_value(),
       .seeds = fed.minibatch.has_value() ? fed.minibatch->seeds : 0,
       .batches_waiting = feeder.loader().batches_waiting(),
       .epoch_seconds = clock.SoFar()});
}

absl::Status Trainer::TrainEpoch(MinibatchFeeder& feeder, uint32_t steps) {
  run_->logs->BeginEpoch(state_, steps);
  EpochClock clock(model().device(), feeder);
  for (uint32_t i = 0; i < steps; ++i) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_RETURN_IF_ERROR(run_->checkpoints->status());
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<FedStep> fed, feeder.Next());
    if (!fed.has_value() || fed->step.epoch != state_.epoch) {
      return absl::InternalError("the plan ended within an epoch");
    }
    MILLRACE_RETURN_IF_ERROR(TrainOnStep(*fed, feeder, clock));
    if (fed->step.last_of_epoch) break;
    if (options_.checkpoint_every > 0 &&
        state_.step % options_.checkpoint_every == 0) {
      MILLRACE_RETURN_IF_ERROR(Save(/*best=*/false));
    }
  }
  run_->logs->EndSteps();
  return EndEpoch(clock);
}

absl::StatusOr<bool> Trainer::Evaluate(MetricsRecord& record) {
  run_->monitor->BeginEvaluation();
  const SteadyTime start = SteadyNow();
  const absl::StatusOr<SplitMetrics> metrics = run_->evaluator->Run();
  if (!metrics.ok()) return OfEvaluation(metrics.status());
  record.metrics = *metrics;
  record.eval_seconds = absl::ToDoubleSeconds(SteadyNow() - start);
  evaluated_ = true;
  if (!record.metrics.train.has_value() && state_.sums.labelled > 0 &&
      options_.task.metric == MetricKind::kAccuracy) {
    record.metrics.train = static_cast<double>(state_.sums.correct) /
                           static_cast<double>(state_.sums.labelled);
  }
  const bool best =
      state_.NoteEvaluation(record.epoch, record.metrics, options_.task);
  run_->monitor->EndEvaluation(record.epoch, record.metrics, best,
                               record.eval_seconds);
  return best;
}

absl::Status Trainer::EndEpoch(EpochClock& clock) {
  MILLRACE_RETURN_IF_ERROR(run_->learner->AverageBuffers());
  MetricsRecord record;
  record.epoch = state_.epoch;
  record.step = state_.step;
  record.loss = MeanLoss(state_.sums);
  clock.FillIn(record);
  run_->monitor->EndEpoch({.wait = record.wait_seconds,
                           .copy = record.copy_seconds,
                           .compute = record.compute_seconds});
  MILLRACE_ASSIGN_OR_RETURN(record.cpu_seconds,
                            SumOfCpuSeconds(clock.CpuSeconds(), collectives_));
  state_.EndEpoch();
  const bool due =
      state_.epoch == options_.epochs ||
      (options_.eval_every > 0 && state_.epoch % options_.eval_every == 0);
  bool best = false;
  if (due) {
    MILLRACE_ASSIGN_OR_RETURN(best, Evaluate(record));
  }
  state_.sums = {};
  if (!options_.checkpoint.empty()) {
    MILLRACE_RETURN_IF_ERROR(Save(best && options_.keep_best));
  }
  return run_->logs->LogEpoch(record);
}

absl::Status Trainer::Save(bool best) {
  const SteadyTime start = SteadyNow();
  absl::Status saved = HandOver(best);
  run_->monitor->NoteSnapshot(absl::ToDoubleSeconds(SteadyNow() - start));
  return saved;
}

absl::Status Trainer::HandOver(bool best) {
  MILLRACE_RETURN_IF_ERROR(run_->logs->SyncOtherHosts());
  const auto checkpoint = std::make_shared<Checkpoint>();
  MILLRACE_RETURN_IF_ERROR(run_->learner->SaveTo(*checkpoint));
  if (collectives_.rank() != 0) return absl::OkStatus();
  state_.world = collectives_.world();
  state_.optimizer_steps = run_->learner->optimizer_steps();
  state_.SaveTo(*checkpoint);
  checkpoint->identity =
      CheckpointIdentity(*run_->plan, run_->inputs, model(), state_);
  run_->checkpoints->Save(checkpoint, best);
  return absl::OkStatus();
}

bool Trainer::IsOutOfPatience() const {
  return options_.patience > 0 && state_.since_best >= options_.patience;
}

absl::Status Trainer::Run() {
  // Streams and timers throw what LibTorch throws.
  absl::Status done =
      CatchTorch("training", [this] { return TrainAndEvaluate(); });
  // A run that ends early needs its last checkpoints as well.
  absl::Status written = run_->checkpoints->Finish();
  run_->monitor->End();
  const bool tell = done.ok() || absl::IsCancelled(done);
  return tell && !written.ok() ? written : done;
}

absl::Status Trainer::TrainAndEvaluate() {
  if (state_.epoch < options_.epochs && !IsOutOfPatience()) {
    MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Loader> loader, MakeLoader());
    MinibatchFeeder feeder(std::move(loader), model(), options_.task);
    // 0 if a resumed epoch has no whole step left for this world.
    uint32_t steps = feeder.loader().steps_of_first_epoch();
    while (state_.epoch < options_.epochs && !IsOutOfPatience()) {
      MILLRACE_RETURN_IF_ERROR(TrainEpoch(feeder, steps));
      steps = feeder.loader().steps_per_epoch();
    }
  }
  return EndRun();
}

absl::Status Trainer::EndRun() {
  MetricsRecord record;
  record.epoch = state_.epoch;
  if (!evaluated_) {
    // No epoch was run, since the last one is always evaluated.
    const RunState before = state_;
    MILLRACE_RETURN_IF_ERROR(Evaluate(record).status());
    state_ = before;
    MILLRACE_RETURN_IF_ERROR(run_->logs->LogEpoch(record));
  }
  if (!options_.predict.empty()) {
    MILLRACE_RETURN_IF_ERROR(WritePrediction());
  }
  MILLRACE_RETURN_IF_ERROR(run_->checkpoints->Finish());
  return run_->logs->LogBest(state_, record);
}

absl::Status Trainer::WritePrediction() {
  const absl::StatusOr<at::Tensor> rows =
      run_->evaluator->Predict(options_.predict_embeddings);
  if (!rows.ok()) return OfEvaluation(rows.status());
  return collectives_.rank() == 0 ? WriteMatrix(options_.predict, *rows)
                                  : absl::OkStatus();
}

}  // namespace millrace
