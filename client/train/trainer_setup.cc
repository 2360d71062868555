// SPDX-License-Identifier: Apache-2.0
// What a Trainer reads and makes before its first step.
#include <ATen/Context.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "client/tensor/torch_status.h"
#include "client/train/class_count.h"
#include "client/train/labels.h"
#include "client/train/seed_table.h"
#include "client/train/train_check.h"
#include "client/train/trainer.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

bool HasSplit(const Manifest& manifest, TypeIndex type,
              const std::string& name) {
  return !absl::IsNotFound(manifest.FindSplit(type, name).status());
}

}  // namespace

absl::StatusOr<GraphShape> Trainer::ShapeOfSource() const {
  const Schema& schema = source_->manifest().schema;
  const Direction direction = options_.job.direction;
  if (learns_links()) {
    return GraphShape::OfEdges(schema, seed_relation_, direction);
  }
  return options_.job.seed_kind == SeedKind::kGraph
             ? GraphShape::OfGraphs(schema, seed_type_)
             : GraphShape::Of(schema, seed_type_, direction);
}

// A list of servers may name those of two stores, and each rank believes the
// first one that answers.
absl::Status Trainer::CheckSameSource() const {
  const Manifest& manifest = source_->manifest();
  constexpr char kAdvice[] =
      "give every rank the same --store, or --servers of one store alone";
  MILLRACE_RETURN_IF_ERROR(CheckSameFingerprint(
      collectives_, "dataset", manifest.dataset_fingerprint, kAdvice));
  return CheckSameFingerprint(collectives_, "store", manifest.fingerprint,
                              kAdvice);
}

// A split may have been added, under one name, to copies of a store.
absl::Status Trainer::CheckSameSplits() const {
  std::string all;
  for (const auto& [name, fingerprint] : SplitTexts()) {
    all += StrCat(all.empty() ? "" : ", ", name.substr(sizeof(kSplitText) - 1),
                  " ", fingerprint);
  }
  return CheckSameFingerprint(
      collectives_, "splits", all,
      "make the same splits on all copies of the store, or serve one copy");
}

// Before anything that options decide is said to other ranks.
absl::Status Trainer::CheckSameOptions() {
  MILLRACE_RETURN_IF_ERROR(
      CheckSameTexts(collectives_, TextsOfRanks(options_)));
  // Each host's supervisor adds --resume by itself. Rank 0, who has the
  // checkpoints, knows whether there was a start before this one.
  MILLRACE_ASSIGN_OR_RETURN(options_.resume,
                            collectives_.ShareAnswer(options_.resume));
  return absl::OkStatus();
}

absl::Status Trainer::CheckSource() const {
  const Schema& schema = source_->manifest().schema;
  if (learns_links() != (options_.job.seed_kind == SeedKind::kEdge)) {
    return absl::InvalidArgumentError(
        "--seeds edge and --task link belong together\nuse both or neither");
  }
  MILLRACE_ASSIGN_OR_RETURN(const GraphShape shape, ShapeOfSource());
  const NodeType& type = schema.node_types[seed_type_];
  const bool labelled = !learns_links();
  if (labelled && shape.homogeneous() && shape.types[0].features == 0) {
    return absl::FailedPreconditionError(
        StrCat("node type \"", shape.types[0].name,
               "\" has no features\nimport the "
               "dataset with --features F.npy"));
  }
  if (labelled && !type.label.present()) {
    return absl::FailedPreconditionError(StrCat("node type \"", type.name,
                                                "\" has no labels\nimport the "
                                                "dataset with --labels F.npy"));
  }
  const bool typed =
      std::any_of(schema.relations.begin(), schema.relations.end(),
                  [](const Relation& relation) { return relation.has_type; });
  if (options_.model.kind == "rgcn" && typed && shape.homogeneous()) {
    return absl::UnimplementedError(
        "--model rgcn takes a graph's relations, not the types of a "
        "relation's edges\nimport each type of edge as a relation of its own "
        "(--edges SRC__REL__DST=F.npy)");
  }
  return absl::OkStatus();
}

absl::Status Trainer::OpenFiles() {
  if (!leader()) return absl::OkStatus();
  // Without an epoch a checkpoint is only read.
  if (!options_.checkpoint.empty() && options_.epochs > 0) {
    // First, for its lock: what is tried out then is nobody else's file.
    absl::StatusOr<std::unique_ptr<CheckpointWriter>> writer =
        CheckpointWriter::Open(
            options_.checkpoint, options_.resume,
            [this](const std::filesystem::path& path,
                   const Checkpoint& checkpoint) -> absl::Status {
              // The lines of its steps first: a host that loses its power must
              // not keep a checkpoint that is ahead of the log.
              if (consumed_.has_value()) {
                MILLRACE_RETURN_IF_ERROR(consumed_->Sync());
              }
              return WriteCheckpoint(path, checkpoint);
            });
    if (!writer.ok()) {
      return absl::Status(writer.status().code(),
                          StrCat("--checkpoint: ", writer.status().message()));
    }
    writer_ = *std::move(writer);
    MILLRACE_RETURN_IF_ERROR(
        CheckWritableFolder("--checkpoint", options_.checkpoint));
  }
  return options_.predict.empty()
             ? absl::OkStatus()
             : CheckWritableFile("--predict", options_.predict);
}

absl::Status Trainer::ReadTables(NodeEvaluator::Tables& tables) {
  const auto there = [&](const std::string& split) {
    return HasSplit(source_->manifest(), seed_type_, split);
  };
  const auto read = [&](const std::string& split, std::optional<SeedList> seeds,
                        std::optional<SeedTable>& table) -> absl::Status {
    MILLRACE_ASSIGN_OR_RETURN(
        table, ReadSeedTable(source_, options_.job, options_.task.kind, split,
                             std::move(seeds)));
    return absl::OkStatus();
  };
  MILLRACE_RETURN_IF_ERROR(
      read(options_.job.split, options_.seeds, tables.train));
  if (!options_.order.empty()) {
    MILLRACE_RETURN_IF_ERROR(ReadOrder(*tables.train));
  }
  // A split that was named must be there.
  const auto read_other = [&](const std::string& named, const char* usual,
                              std::optional<SeedTable>& table) -> absl::Status {
    if (named.empty() && !there(usual)) return absl::OkStatus();
    return read(named.empty() ? usual : named, std::nullopt, table);
  };
  MILLRACE_RETURN_IF_ERROR(
      read_other(options_.valid_split, "valid", tables.valid));
  MILLRACE_RETURN_IF_ERROR(
      read_other(options_.test_split, "test", tables.test));
  MILLRACE_ASSIGN_OR_RETURN(options_.model.out, CountOutputs(tables));
  MILLRACE_RETURN_IF_ERROR(CheckLabels(*tables.train));
  return options_.task.CheckOutputs(options_.model.out);
}

// What a model must tell of a node: its class, or the columns of the labels; 0
// when nothing is labelled.
absl::StatusOr<int64_t> Trainer::CountOutputs(
    const NodeEvaluator::Tables& tables) const {
  std::vector<const SeedTable*> present;
  for (const auto* table : {&tables.train, &tables.valid, &tables.test}) {
    if (table->has_value() && (*table)->size() > 0) present.push_back(&**table);
  }
  return CatchTorch("counting classes", [&]() -> absl::StatusOr<int64_t> {
    if (options_.task.kind == TaskKind::kSingle) {
      return CountClasses(present, options_.classes);
    }
    return present.empty() ? 0 : present[0]->label.size(1);
  });
}

absl::Status Trainer::CheckLabels(const SeedTable& train) const {
  // Without an epoch only the number of outputs is learned from them.
  const bool unused = options_.epochs == 0 && options_.model.out > 0;
  if (unused || CountLabelled(train.label) > 0) return absl::OkStatus();
  const std::string unlabelled =
      StrCat(train.size(), " seeds, but none of them has a label\n");
  if (options_.seeds.has_value()) {
    return absl::InvalidArgumentError(
        StrCat("--seeds-file has ", unlabelled, "give seeds with labels"));
  }
  return absl::FailedPreconditionError(StrCat(
      "split \"", train.split, "\" of ", SeedTypeName(), " has ", unlabelled,
      "name another with --split, or import labels of it: NaN and "
      "negative ones are none"));
}

absl::Status Trainer::MakeModel() {
  MILLRACE_ASSIGN_OR_RETURN(const GraphShape shape, ShapeOfSource());
  options_.model.in = shape.types[shape.seed_type].features;
  MILLRACE_RETURN_IF_ERROR(CheckModelMemory(shape));
  // No rank takes memory that another has yet to count as available.
  MILLRACE_RETURN_IF_ERROR(collectives_.Barrier());
  MILLRACE_ASSIGN_OR_RETURN(model_, Model::Create(options_.model, shape));
  return CheckScript();
}

// Each parameter is there as its value, its gradient, in the exchange between
// ranks, and with what the optimizer keeps.
absl::Status Trainer::CheckModelMemory(const GraphShape& shape) const {
  const ModelConfig& model = options_.model;
  if (model.kind == "script") return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const int64_t values,
                            Model::CountParameters(model, shape));
  const int64_t copies = options_.optimizer.kind == OptimizerKind::kSgd ? 4 : 6;
  constexpr int64_t kValue = sizeof(float);
  const int ranks = options_.ranks_on_host;
  const MemoryNeed need = {
      .process = SaturatedProduct({values, kValue, copies}),
      .host = SaturatedProduct({values, kValue, copies, ranks})};
  return CheckMemory(
      StrCat("training a model from ", model.in, " features over --hidden ",
             model.hidden, " to ", model.out, " outputs in ", ranks,
             ranks == 1 ? " trainer" : " trainers"),
      need,
      "use a smaller --hidden, fewer trainers on this host, or labels with "
      "fewer classes");
}

absl::Status Trainer::MakeNodeEvaluator() {
  NodeEvaluator::Tables tables;
  MILLRACE_RETURN_IF_ERROR(ReadTables(tables));
  MILLRACE_RETURN_IF_ERROR(MakeModel());
  evaluator_ = std::make_unique<NodeEvaluator>(source_, options_.job, *model_,
                                               collectives_, std::move(tables),
                                               options_.evaluation);
  return absl::OkStatus();
}

absl::Status Trainer::SetUp() {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  MILLRACE_RETURN_IF_ERROR(CheckSameSource());
  MILLRACE_RETURN_IF_ERROR(CheckSameOptions());
  MILLRACE_RETURN_IF_ERROR(CheckOptions());
  MILLRACE_RETURN_IF_ERROR(CheckSource());
  MILLRACE_RETURN_IF_ERROR(CheckSeeds());
  MILLRACE_RETURN_IF_ERROR(CheckSameSplits());
  MILLRACE_RETURN_IF_ERROR(OpenFiles());
  MILLRACE_RETURN_IF_ERROR(NameSeeds());
  options_.evaluation.task = options_.task;
  options_.evaluation.inference.ranks_on_host = options_.ranks_on_host;
  MILLRACE_RETURN_IF_ERROR(learns_links() ? MakeLinkEvaluator()
                                          : MakeNodeEvaluator());
  MILLRACE_RETURN_IF_ERROR(evaluator_->CheckMemory(
      !options_.predict.empty() && !options_.predict_embeddings));
  // As in MakeModel: no rank goes on before all have checked.
  MILLRACE_RETURN_IF_ERROR(collectives_.Barrier());
  step_ = std::make_unique<TrainStep>(*model_, collectives_, options_.task);
  optimizer_ = std::make_unique<Optimizer>(options_.optimizer,
                                           model_->parameters().parameters());
  MILLRACE_ASSIGN_OR_RETURN(
      learning_rate_,
      LearningRate::Parse(options_.lr_schedule, options_.optimizer.lr,
                          options_.epochs));
  if (options_.resume) {
    MILLRACE_RETURN_IF_ERROR(Resume());
  }
  if (!options_.init.empty() && !resumed_) {
    MILLRACE_RETURN_IF_ERROR(ReadInitialWeights());
  }
  return OpenLogs();
}

absl::Status Trainer::OpenLogs() {
  if (leader() && !options_.metrics_json.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(metrics_,
                              LineFile::Open(options_.metrics_json, resumed_));
    MILLRACE_RETURN_IF_ERROR(metrics_->Begin());
  }
  return options_.consumed_log.empty() ? absl::OkStatus() : OpenConsumedLog();
}

// Attempts are told apart by their numbers, also those that end before their
// first checkpoint, and on every host that has a file of its own.
absl::Status Trainer::OpenConsumedLog() {
  const std::string& path = options_.consumed_log;
  MILLRACE_ASSIGN_OR_RETURN(consumed_, LineFile::Open(path, options_.resume));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<int64_t> files,
      OfAllRanks(static_cast<int64_t>(consumed_->identity())));
  const auto own = files.begin() + collectives_.rank();
  owns_log_ = std::find(files.begin(), own, *own) == own;
  several_logs_ =
      std::count(files.begin(), files.end(), files[0]) < collectives_.world();
  if (owns_log_) {
    MILLRACE_RETURN_IF_ERROR(consumed_->Begin());
  }
  int64_t last = -1;
  if (options_.resume) {
    MILLRACE_ASSIGN_OR_RETURN(last, LastAttempt(path));
  }
  // Nobody writes before all have come here, and so begun their files.
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> lasts, OfAllRanks(last));
  at_.attempt =
      std::max(at_.attempt, *std::max_element(lasts.begin(), lasts.end()) + 1);
  // It makes lines void, which an evaluation of an older checkpoint must not.
  if (owns_log_ && options_.epochs > 0) {
    MILLRACE_RETURN_IF_ERROR(consumed_->Write(
        AttemptLine({.attempt = at_.attempt, .checkpoint = at_.started_from})));
  }
  // No line of a batch is before it.
  return collectives_.Barrier();
}

absl::StatusOr<std::vector<int64_t>> Trainer::OfAllRanks(int64_t number) {
  return CatchTorch(
      "comparing numbers of ranks",
      [&]() -> absl::StatusOr<std::vector<int64_t>> {
        const at::Tensor all = at::zeros({collectives_.world()}, at::kLong);
        all[collectives_.rank()].fill_(number);
        MILLRACE_RETURN_IF_ERROR(collectives_.AllReduceSum(all));
        const int64_t* numbers = all.const_data_ptr<int64_t>();
        return std::vector<int64_t>(numbers, numbers + all.numel());
      });
}

// Rank 0's own it syncs before it writes a checkpoint, beside the steps. The
// other hosts' must be on their disks before it hears of a checkpoint.
absl::Status Trainer::SyncOtherLogs() {
  if (!several_logs_) return absl::OkStatus();
  if (owns_log_ && !leader()) {
    MILLRACE_RETURN_IF_ERROR(consumed_->Sync());
  }
  return collectives_.Barrier();
}

}  // namespace millrace
