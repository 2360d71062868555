// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/run_identity.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "client/nn/model_kind.h"
#include "common/base/dtype.h"
#include "common/base/strings.h"
#include "common/sample/job_options.h"

namespace millrace {
namespace {

const char* YesNo(bool value) { return value ? "yes" : "no"; }

const char* NormName(NormKind norm) {
  switch (norm) {
    case NormKind::kBatch:
      return "batch";
    case NormKind::kLayer:
      return "layer";
    case NormKind::kNone:
      break;
  }
  return "none";
}

const char* AggregationName(Aggregation aggregation) {
  switch (aggregation) {
    case Aggregation::kSum:
      return "sum";
    case Aggregation::kMax:
      return "max";
    case Aggregation::kMean:
      break;
  }
  return "mean";
}

const char* OptimizerName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kAdam:
      break;
  }
  return "adam";
}

// Returns the shortest text that no other number has.
std::string NumberText(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}

std::string GivenText(bool given) { return given ? "given" : "not given"; }

}  // namespace

std::string EvalNegativesText(const EvaluationOptions& evaluation) {
  switch (evaluation.negatives) {
    case EvalNegatives::kAll:
      return "all";
    case EvalNegatives::kGiven:
      return "given";
    case EvalNegatives::kDrawn:
      return FormatNegatives(evaluation.drawn);
    case EvalNegatives::kDefault:
      break;
  }
  return evaluation.kind == InferenceKind::kFull ? "default, full"
                                                 : "default, sampled";
}

RunIdentity IdentifyRun(const TrainOptions& options) {
  const ModelConfig& model = options.model;
  RunIdentity texts = {
      {"--feature-dtype", options.feature_dtype == DType::kNone
                              ? ""
                              : std::string(DTypeName(options.feature_dtype))},
      {"--model", std::string(InfoOf(model.kind).name)},
      {"--hidden", absl::StrCat(model.hidden)},
      {"--layers", absl::StrCat(model.layers)},
      {"--dropout", absl::StrCat(model.dropout)},
      {"--norm", NormName(model.norm)},
      {"--gcn-norm", model.gcn_norm == GcnNorm::kSampled ? "sampled" : "full"},
      {"--heads", absl::StrCat(model.heads)},
      {"--aggr", AggregationName(model.aggregation)},
      {"--num-bases", absl::StrCat(model.bases)},
      {"--gin-mlp", absl::StrCat(model.gin_mlp)},
      {"--readout", AggregationName(model.readout)},
      {"--graph-head", model.graph_head ? "mlp" : "none"},
      {"--task", TaskName(options.task.kind)},
      {"--model-seed", absl::StrCat(model.seed)},
      {"--optimizer", OptimizerName(options.optimizer.kind)},
  };
  if (options.task.kind == TaskKind::kLink) {
    texts["--loss"] =
        options.task.loss == LinkLoss::kSoftmax ? "softmax" : "bce";
    texts["--decoder"] =
        model.decoder == DecoderKind::kDistMult ? "distmult" : "dot";
  }
  for (const auto& [option, text] : JobIdentity(options.job)) {
    texts[StrCat("--", option)] = text;
  }
  return texts;
}

RunIdentity IdentifyGroup(const TrainOptions& options) {
  const EvaluationOptions& evaluation = options.evaluation;
  // These take precedence over those of IdentifyRun(), which has some of them
  // with fewer digits or by content.
  RunIdentity texts = {
      {"--lr", NumberText(options.optimizer.lr)},
      {"--weight-decay", NumberText(options.optimizer.weight_decay)},
      {"--lr-schedule", options.lr_schedule},
      {"--epochs", absl::StrCat(options.epochs)},
      {"--patience", absl::StrCat(options.patience)},
      {"--metric", MetricName(options.task)},
      {"--dropout", NumberText(options.model.dropout)},
      {"--classes", absl::StrCat(options.classes)},
      {"--inference",
       evaluation.kind == InferenceKind::kFull ? "full" : "sampled"},
      {"--eval-fanouts", FormatFanouts(evaluation.fanouts)},
      {"--eval-batch-size", absl::StrCat(evaluation.inference.chunk)},
      {"--eval-ranks", evaluation.inference.all_ranks ? "all" : "0"},
      {"--eval-negatives", EvalNegativesText(evaluation)},
      {"--eval-every", absl::StrCat(options.eval_every)},
      {"--valid-split", options.valid_split},
      {"--test-split", options.test_split},
      {"--checkpoint", GivenText(!options.checkpoint.empty())},
      {"--checkpoint-every", absl::StrCat(options.checkpoint_every)},
      {"--keep-best", YesNo(options.keep_best)},
      {"--consumed-log", GivenText(!options.consumed_log.empty())},
      {"--seeds-file", GivenText(options.seeds.has_value())},
      {"--order", GivenText(!options.order.empty())},
      {"--init", GivenText(!options.init.empty())},
      {"--predict", GivenText(!options.predict.empty())},
      {"--output", options.predict_embeddings ? "embeddings" : "logits"},
  };
  texts.merge(IdentifyRun(options));
  return texts;
}

}  // namespace millrace
