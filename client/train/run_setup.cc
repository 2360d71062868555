// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_setup.h"

#include <ATen/Context.h>

#include <string>
#include <utility>

#include "client/nn/model_kind.h"
#include "client/train/checkpoint_identity.h"
#include "client/train/run/train_check.h"
#include "client/train/run/train_words.h"
#include "client/train/run_model.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Ranks on different devices, or with different backends, would exchange
// gradients in different ways.
absl::Status CheckSameDevice(Collectives& collectives,
                             const Accelerator& accelerator) {
  const std::pair<const char*, std::string> fields[] = {
      {"device", accelerator.kind()},
      {"backend", WordFor(kBackendWords, accelerator.backend())}};
  for (const auto& [field, text] : fields) {
    MILLRACE_RETURN_IF_ERROR(
        CheckSameInGroup(collectives, {{IdentityKey(field), text}},
                         Reason{"ranks_on_other_devices"}));
  }
  return absl::OkStatus();
}

// Plans the run. Fails if the plans of the ranks differ, and says in what.
absl::StatusOr<RunPlan> AgreeOnPlan(TrainOptions options,
                                    const Manifest& manifest,
                                    Collectives& collectives,
                                    Accelerator& accelerator) {
  MILLRACE_RETURN_IF_ERROR(CheckSameSource(collectives, manifest));
  // Evaluation has the features as they are stored: a source that keeps others
  // on the device need not keep these as well.
  if (options.feature_dtype == DType::kNone) {
    options.evaluation.inference.memory = accelerator.memory();
  }
  // Compares the options before they determine what ranks send to each other.
  MILLRACE_RETURN_IF_ERROR(
      CheckSameInGroup(collectives, IdentifyGroup(options)));
  MILLRACE_RETURN_IF_ERROR(CheckSameDevice(collectives, accelerator));
  // Each host's supervisor adds --resume by itself. Rank 0, which has the
  // checkpoints, knows whether this is the first start.
  MILLRACE_ASSIGN_OR_RETURN(options.resume,
                            collectives.ShareAnswer(options.resume));
  MILLRACE_ASSIGN_OR_RETURN(RunPlan plan,
                            MakeRunPlan(std::move(options), manifest));
  MILLRACE_RETURN_IF_ERROR(CheckSameSplits(collectives, plan.splits));
  return plan;
}

// Locks, before anything is read, the files that the run will write.
absl::Status OpenFiles(Collectives& collectives, RunParts& run) {
  const TrainOptions& options = run.plan->options;
  run.logs = std::make_unique<RunLogs>(options, collectives);
  MILLRACE_ASSIGN_OR_RETURN(
      run.checkpoints,
      RunCheckpoints::Open(options, collectives,
                           [&logs = *run.logs, monitor = run.monitor](
                               const std::filesystem::path& path,
                               const Checkpoint& checkpoint) -> absl::Status {
                             // Syncs the lines of its steps first, because a
                             // host that loses power must not keep a checkpoint
                             // that is ahead of the log.
                             MILLRACE_RETURN_IF_ERROR(logs.SyncConsumed());
                             MILLRACE_RETURN_IF_ERROR(
                                 WriteCheckpoint(path, checkpoint));
                             monitor->NoteCheckpoint();
                             return absl::OkStatus();
                           }));
  return collectives.rank() != 0 || options.predict.empty()
             ? absl::OkStatus()
             : CheckWritableFile("predict", options.predict);
}

absl::Status ReadInputs(Collectives& collectives, RunParts& run) {
  const RunPlan& plan = *run.plan;
  MILLRACE_RETURN_IF_ERROR(CheckSameOnAllRanks(collectives, "the list of seeds",
                                               plan.seeds_checksum));
  MILLRACE_ASSIGN_OR_RETURN(run.inputs, run.objective->Read(run.source, plan));
  if (!run.inputs.order.has_value()) return absl::OkStatus();
  return CheckSameOnAllRanks(collectives,
                             StrCat("the order ", plan.options.order),
                             run.inputs.order->ChecksumOf(plan.options.epochs));
}

absl::Status MakeLearner(Collectives& collectives, Accelerator& accelerator,
                         RunParts& run) {
  const TrainOptions& options = run.plan->options;
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model,
      MakeRunModel(*run.plan, run.inputs.model, collectives, accelerator));
  MILLRACE_ASSIGN_OR_RETURN(
      run.evaluator, run.objective->MakeEvaluator(run.source, *run.plan, *model,
                                                  collectives, accelerator));
  MILLRACE_RETURN_IF_ERROR(run.evaluator->CheckMemory(
      !options.predict.empty() && !options.predict_embeddings));
  // No rank may take memory before all ranks have checked what is available.
  MILLRACE_RETURN_IF_ERROR(collectives.Barrier());
  MILLRACE_ASSIGN_OR_RETURN(
      run.learner, Learner::Create(std::move(model), options.optimizer,
                                   *run.objective, collectives, accelerator));
  return absl::OkStatus();
}

absl::Status Restore(const Checkpoint& checkpoint, int world, RunParts& run) {
  MILLRACE_ASSIGN_OR_RETURN(run.state, RunState::From(checkpoint));
  RunIdentity identity = CheckpointIdentity(*run.plan, run.inputs,
                                            run.learner->model(), run.state);
  // Splits that were added since the checkpoint do not matter. (A checkpoint
  // that names no splits has a fingerprint of the dataset that covers them.)
  std::erase_if(identity, [&](const auto& text) {
    return text.first.starts_with(kSplitPrefix) &&
           !checkpoint.identity.contains(text.first);
  });
  // Checkpoints of versions without the option are in float32.
  const std::string precision = IdentityKey("precision");
  if (!checkpoint.identity.contains(precision) &&
      run.plan->options.model.precision == Precision::kFloat32) {
    identity.erase(precision);
  }
  MILLRACE_RETURN_IF_ERROR(CheckSameIdentity(checkpoint.identity, identity));
  MILLRACE_RETURN_IF_ERROR(run.learner->Load(
      checkpoint, run.state.optimizer_steps, run.state.world == world));
  run.state.BeginAttempt();
  return absl::OkStatus();
}

RunInfo DescribeRun(const RunPlan& plan, const Collectives& collectives,
                    const Accelerator& accelerator) {
  const TrainOptions& options = plan.options;
  const bool graphs = options.job.seed_kind == SeedKind::kGraph;
  return {.rank = collectives.rank(),
          .world = collectives.world(),
          .device = accelerator.kind(),
          .model = std::string(InfoOf(options.model.kind).name),
          .task = graphs ? "graph" : TaskName(options.task.kind),
          .metric = MetricName(options.task),
          .seeds = plan.seeds_name,
          .epochs = options.epochs,
          .higher_is_better = options.task.Better(1, 0),
          .checkpoints = RunCheckpoints::Writes(options, collectives)};
}

void Begin(const RunState& state, RunMonitor& monitor) {
  const bool any = state.best_valid.has_value();
  monitor.Begin({state.train_at_best, state.best_valid, state.test_at_best},
                any ? std::optional(state.best_epoch) : std::nullopt);
}

// Returns whether there was a checkpoint to resume from.
absl::StatusOr<bool> Resume(Collectives& collectives, RunParts& run) {
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<Checkpoint> checkpoint,
                            run.checkpoints->Read());
  if (!checkpoint.has_value()) return false;
  const std::string path = run.checkpoints->path();
  MILLRACE_RETURN_IF_ERROR(
      InCheckpoint(path, Restore(*checkpoint, collectives.world(), run)));
  MILLRACE_ASSIGN_OR_RETURN(const bool best_is_ahead,
                            run.checkpoints->BestIsAhead(run.state.epoch));
  // The best model up to here has been overwritten, so the next one that is
  // evaluated becomes the best.
  if (best_is_ahead) run.state.best_valid.reset();
  if (collectives.rank() == 0) {
    LogInfo("resumed", {{"checkpoint", path},
                        {"epoch", run.state.epoch},
                        {"batch", run.state.next_batch}});
  }
  return true;
}

}  // namespace

absl::StatusOr<RunParts> SetUpRun(std::shared_ptr<BatchSource> source,
                                  Collectives& collectives,
                                  TrainOptions options,
                                  Accelerator& accelerator,
                                  std::shared_ptr<RunMonitor> monitor) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  // Nothing reads what it has not written.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  MILLRACE_ASSIGN_OR_RETURN(RunPlan plan,
                            AgreeOnPlan(std::move(options), source->manifest(),
                                        collectives, accelerator));
  RunParts run;
  run.source = std::move(source);
  run.memory = accelerator.memory();
  run.monitor = std::move(monitor);
  run.plan = std::make_unique<const RunPlan>(std::move(plan));
  const TrainOptions& planned = run.plan->options;
  run.monitor->SetInfo(DescribeRun(*run.plan, collectives, accelerator));
  run.objective = MakeObjective(planned.task, planned.job.seed_kind);
  MILLRACE_RETURN_IF_ERROR(OpenFiles(collectives, run));
  MILLRACE_RETURN_IF_ERROR(ReadInputs(collectives, run));
  MILLRACE_RETURN_IF_ERROR(MakeLearner(collectives, accelerator, run));
  bool resumed = false;
  if (planned.resume) {
    MILLRACE_ASSIGN_OR_RETURN(resumed, Resume(collectives, run));
  }
  if (!planned.init.empty() && !resumed) {
    MILLRACE_RETURN_IF_ERROR(
        ReadInitialWeights(planned, collectives, run.learner->model()));
  }
  MILLRACE_RETURN_IF_ERROR(run.logs->Open(resumed, run.state));
  Begin(run.state, *run.monitor);
  return run;
}

}  // namespace millrace
