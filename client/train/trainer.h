// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/loader.h"
#include "client/nn/model.h"
#include "client/train/checkpoint.h"
#include "client/train/checkpoint_writer.h"
#include "client/train/collectives.h"
#include "client/train/evaluator.h"
#include "client/train/link_evaluator.h"
#include "client/train/node_evaluator.h"
#include "client/train/optimizer.h"
#include "client/train/option_texts.h"
#include "client/train/run_log.h"
#include "client/train/seed_table.h"
#include "client/train/train_options.h"
#include "client/train/train_step.h"
#include "client/train/training_order.h"
#include "common/base/progress.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// Trains a model on nodes of one type, data parallel over the ranks of a
// group. Same bits for equal options, source content,
// world, threads, build and kind of CPU.
// Results go to stdout, progress to stderr, from rank 0.
// Threads: one at a time; all ranks make the same calls.
class Trainer {
 public:
  // Reads the splits' labels, builds the model and resumes if asked to.
  // `collectives` must outlive the trainer.
  // FAILED_PRECONDITION: no labels, or no features in a homogeneous graph
  // (says how to import them), a checkpoint of another job (names what
  // differs), a store, a script, seeds or an order that differ from rank 0's,
  // or files that another run writes.
  // INVALID_ARGUMENT: layers that do not fit the fanouts, options that are not
  // rank 0's, a folder with another run's checkpoints. Errors of files that
  // cannot be written later, of Model::Create, the source and the group.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      std::shared_ptr<BatchSource> source, Collectives& collectives,
      TrainOptions options);

  // Trains the epochs that are left, evaluates, predicts; returns when the
  // checkpoints are on the disk. CANCELLED when interrupted. An error of
  // writing a checkpoint ends the run at its next step.
  absl::Status Run();

  Model& model() { return *model_; }
  // Of the epochs and logged steps run by this object, in order.
  const std::vector<MetricsRecord>& history() const { return history_; }

 private:
  // Where a run is and what it has seen; what a checkpoint stores.
  struct Progression {
    uint32_t epoch = 0;
    uint32_t next_batch = 0;
    uint32_t step = 0;  // of the epoch
    StepSums sums;      // of the epoch
    int64_t attempt = 0;
    std::string started_from = "0:0";
    std::optional<double> best_valid;
    std::optional<double> test_at_best;
    std::optional<double> train_at_best;
    uint32_t best_epoch = 0;
    uint32_t since_best = 0;  // evaluations
  };
  struct Clock;  // time and CPU of an epoch's parts

  Trainer(std::shared_ptr<BatchSource> source, Collectives& collectives,
          TrainOptions options);

  absl::Status SetUp();
  absl::Status CheckSameSource() const;
  absl::Status CheckSameSplits() const;
  absl::Status CheckSameOptions();
  absl::Status CheckSource() const;
  absl::Status OpenFiles();
  absl::StatusOr<GraphShape> ShapeOfSource() const;
  absl::Status ReadTables(NodeEvaluator::Tables& tables);
  absl::StatusOr<int64_t> CountOutputs(
      const NodeEvaluator::Tables& tables) const;
  absl::Status CheckLabels(const SeedTable& train) const;
  absl::Status MakeModel();
  absl::Status CheckModelMemory(const GraphShape& shape) const;
  absl::Status MakeNodeEvaluator();
  absl::Status ReadOrder(const SeedTable& train);
  absl::Status OpenLogs();
  absl::Status OpenConsumedLog();
  // Each rank's number. All ranks call it.
  absl::StatusOr<std::vector<int64_t>> OfAllRanks(int64_t number);
  // Those that rank 0 cannot sync. All ranks call it.
  absl::Status SyncOtherLogs();

  absl::StatusOr<std::unique_ptr<Loader>> MakeLoader() const;
  // The rest of epoch at_.epoch, `steps` steps.
  absl::Status TrainEpoch(Loader& loader, uint32_t steps);
  absl::Status TrainOnStep(const LoaderStep& step, Clock& clock);
  absl::Status EndEpoch(Clock& clock);
  absl::Status Evaluate(MetricsRecord& record);
  bool OutOfPatience() const;
  absl::Status TrainAndEvaluate();
  absl::Status EndRun();
  absl::Status WritePrediction();

  absl::Status LogStep(const LoaderStep& step, const StepSums& sums);
  absl::Status LogConsumed(const Batch& batch);
  absl::Status Report(const MetricsRecord& record);

  // All ranks call it. FAILED_PRECONDITION: other seeds than rank 0's.
  absl::Status NameSeeds();
  std::string SeedTypeName() const;
  std::string OrderText() const;
  OptionTexts SplitTexts() const;
  OptionTexts Identity() const;
  // Hands a copy of all there is to the writer, and goes on as if it had not.
  // All ranks call it. `best`: best.pt is to hold it too.
  absl::Status Save(bool best);
  absl::StatusOr<std::vector<NamedTensor>> CopyOfModel();
  std::map<std::string, int64_t> Counters() const;
  std::map<std::string, double> Values() const;
  absl::Status Resume();
  absl::Status Restore(const Checkpoint& checkpoint);
  // All ranks call it.
  absl::StatusOr<bool> BestIsAhead();
  // Every rank starts with rank 0's file.
  absl::Status ReadInitialWeights();
  std::string InitAdvice() const;
  bool leader() const { return collectives_.rank() == 0; }
  bool learns_links() const { return options_.task.kind == TaskKind::kLink; }

  // trainer_options.cc: whether they fit each other and the graph.
  absl::Status CheckOptions();
  absl::Status CheckDepth(const ResolvedJob& job) const;
  absl::Status CheckSeeds() const;
  absl::Status CheckEvaluation(const ResolvedJob& job) const;
  absl::Status CheckEvaluationTimes(const ResolvedJob& job) const;
  absl::Status CheckPrediction() const;

  // trainer_script.cc: whether a model that is a script fits the labels and
  // the evaluation, and is every rank's.
  absl::Status CheckScript() const;

  // trainer_links.cc: what is different where edges are learned.
  struct LinkTables;
  absl::Status CheckLinks() const;
  LinkEvaluator::Splits LinkSplits() const;
  absl::Status ReadLinkTables(LinkTables& tables);
  absl::Status MakeLinkEvaluator();

  const std::shared_ptr<BatchSource> source_;  // shared with loaders
  Collectives& collectives_;
  TrainOptions options_;
  TypeIndex seed_type_ = 0;
  RelationIndex seed_relation_ = -1;  // of edge seeds
  std::string seeds_text_ = "none";   // options_.seeds, in the identity
  std::optional<TrainingOrder> order_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<LearningRate> learning_rate_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<LineFile> metrics_;  // rank 0
  std::optional<LineFile> consumed_;
  bool owns_log_ = false;      // the first rank that writes this file
  bool several_logs_ = false;  // ranks write other files, on other hosts
  std::unique_ptr<CheckpointWriter> writer_;  // rank 0, if it trains
  std::unique_ptr<Progress> progress_;        // rank 0, during an epoch

  Progression at_;
  bool resumed_ = false;    // from a checkpoint
  bool evaluated_ = false;  // since the last change of the model
  bool new_best_ = false;   // by the last evaluation
  std::vector<MetricsRecord> history_;
};

}  // namespace millrace
