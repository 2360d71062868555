// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/device/accelerator.h"
#include "client/train/group/collectives.h"
#include "client/train/run/log_lines.h"
#include "client/train/run/run_monitor.h"
#include "client/train/run/train_options.h"
#include "client/train/run_state.h"
#include "common/sample/batch_source.h"

namespace millrace {

class EpochClock;
class Loader;
class MinibatchFeeder;
struct FedStep;
struct RunParts;

// Trains a model on the seeds of a job, data parallel over the ranks of a
// group. Gives the same bits for equal options, source content, world, threads,
// build and kind of CPU. Rank 0 prints results on stdout, progress on stderr.
// Threads: one at a time; all ranks make the same calls.
class Trainer {
 public:
  // Reads the splits' labels, builds the model and resumes if asked to.
  // `collectives` and `accelerator` must outlive the trainer.
  // FAILED_PRECONDITION: no labels, or no features in a homogeneous graph
  // (says how to import them), a checkpoint of another job (names what
  // differs), a store, a script, seeds or an order that differ from rank 0's,
  // or files that another run writes.
  // INVALID_ARGUMENT: layers that do not fit the fanouts, options that differ
  // from rank 0's, a folder with another run's checkpoints. Also errors of
  // output files that cannot be written, of MakeRunPlan, Model::Create, the
  // source and the group.
  // `monitor`, if there is one, is told how the run goes.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      std::shared_ptr<BatchSource> source, Collectives& collectives,
      TrainOptions options, Accelerator& accelerator = CpuAccelerator(),
      std::shared_ptr<RunMonitor> monitor = nullptr);
  ~Trainer();

  // Trains the epochs that are left, evaluates and predicts; returns when the
  // checkpoints are on disk. CANCELLED: interrupted. INTERNAL: from LibTorch,
  // such as when a device is lost. If a checkpoint cannot be written, the run
  // ends at its next step.
  absl::Status Run();

  Model& model();
  // The epochs and logged steps that this object has run, in order.
  const std::vector<MetricsRecord>& history() const;
  // How far the run has got.
  const RunState& state() const { return state_; }

 private:
  Trainer(RunParts run, Collectives& collectives);

  absl::StatusOr<std::unique_ptr<Loader>> MakeLoader() const;
  absl::Status TrainAndEvaluate();
  // Trains the rest of the state's epoch, which has `steps` steps.
  absl::Status TrainEpoch(MinibatchFeeder& feeder, uint32_t steps);
  absl::Status TrainOnStep(const FedStep& fed, MinibatchFeeder& feeder,
                           EpochClock& clock);
  void ReportStep(const FedStep& fed, const StepSums& sums,
                  const MinibatchFeeder& feeder, EpochClock& clock);
  absl::Status EndEpoch(EpochClock& clock);
  // Fills in the metrics, and returns whether they are the best so far.
  absl::StatusOr<bool> Evaluate(MetricsRecord& record);
  bool IsOutOfPatience() const;
  // Hands a copy of the run to the writer of checkpoints, with `best` for
  // best.pt too. All ranks call it.
  absl::Status Save(bool best);
  absl::Status HandOver(bool best);
  absl::Status EndRun();
  absl::Status WritePrediction();

  Collectives& collectives_;
  const std::unique_ptr<RunParts> run_;
  RunState& state_;              // the run's
  const TrainOptions& options_;  // the plan's
  bool evaluated_ = false;       // since the last change of the model
};

}  // namespace millrace
