// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/option_texts.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/nn/model_kind.h"
#include "common/base/dtype.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

std::string FanoutsText(const Fanouts& fanouts) {
  return absl::StrJoin(fanouts, ",");
}

std::string FanoutsText(const JobSpec& job) {
  std::string text = FanoutsText(job.fanouts);
  for (const auto& [relation, fanouts] : job.relation_fanouts) {
    absl::StrAppend(&text, " ", relation, "=", FanoutsText(fanouts));
  }
  return text;
}

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

// The --method, with what belongs to it.
std::string MethodText(const JobSpec& job) {
  const auto walks = [&job](const char* name) {
    return StrCat(name, " ", job.walks, " of ", job.walk_length, " ",
                  absl::StrJoin(job.metapath, ","));
  };
  switch (job.method) {
    case SampleMethod::kLabor:
      return "labor";
    case SampleMethod::kWalk:
      return walks("walk");
    case SampleMethod::kPpr:
      return StrCat(walks("ppr"), " restart ", job.restart);
    case SampleMethod::kInduced:
      return "induced";
    case SampleMethod::kUniform:
      break;
  }
  return "uniform";
}

const char* TemporalName(TemporalStrategy strategy) {
  switch (strategy) {
    case TemporalStrategy::kUniform:
      return "uniform";
    case TemporalStrategy::kLast:
      return "last";
    case TemporalStrategy::kNone:
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

std::string NegativesText(const Negatives& negatives) {
  switch (negatives.mode) {
    case NegativeMode::kBinary:
      return StrCat("binary:", negatives.amount);
    case NegativeMode::kTriplet:
      return StrCat("triplet:", negatives.amount);
    case NegativeMode::kShared:
      return StrCat("shared:", negatives.amount);
    case NegativeMode::kInBatch:
      return "in-batch";
    case NegativeMode::kNone:
      break;
  }
  return "none";
}

const char* ExcludeName(ExcludeSeedEdges exclude) {
  switch (exclude) {
    case ExcludeSeedEdges::kSelf:
      return "self";
    case ExcludeSeedEdges::kReverse:
      return "reverse";
    case ExcludeSeedEdges::kNone:
      break;
  }
  return "none";
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

// All digits that tell it from other numbers, and no more.
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
      return NegativesText(evaluation.drawn);
    case EvalNegatives::kDefault:
      break;
  }
  return evaluation.kind == InferenceKind::kFull ? "default, full"
                                                 : "default, sampled";
}

OptionTexts TextsOfRun(const TrainOptions& options) {
  const JobSpec& job = options.job;
  const ModelConfig& model = options.model;
  OptionTexts texts = {
      {"--seed", absl::StrCat(job.seed)},
      {"--seeds", job.seed_kind == SeedKind::kGraph  ? "graph"
                  : job.seed_kind == SeedKind::kEdge ? "edge"
                                                     : "node"},
      {"--type", job.seed_type},
      {"--split", job.split},
      {"--fanouts", FanoutsText(job)},
      {"--batch-size", absl::StrCat(job.batch_size)},
      {"--shuffle", YesNo(job.shuffle)},
      {"--seed-order",
       job.seed_order == SeedOrder::kLocal ? "local" : "global"},
      {"--drop-last", YesNo(job.drop_last)},
      {"--replace", YesNo(job.replace)},
      {"--disjoint", YesNo(job.disjoint)},
      {"--direction", std::string(DirectionName(job.direction))},
      {"--method", MethodText(job)},
      {"--weighted", YesNo(job.weighted)},
      {"--temporal", TemporalName(job.temporal)},
      {"--train-graph",
       job.train_graph.empty() ? "full" : StrCat("induced:", job.train_graph)},
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
    texts["--negatives"] = NegativesText(job.negatives);
    texts["--exclude-seed-edges"] = ExcludeName(job.exclude);
    texts["--loss"] =
        options.task.loss == LinkLoss::kSoftmax ? "softmax" : "bce";
    texts["--decoder"] =
        model.decoder == DecoderKind::kDistMult ? "distmult" : "dot";
  }
  return texts;
}

OptionTexts TextsOfRanks(const TrainOptions& options) {
  const EvaluationOptions& evaluation = options.evaluation;
  // Some of these are in TextsOfRun() in fewer digits, or by their content.
  OptionTexts texts = {
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
      {"--eval-fanouts", FanoutsText(evaluation.fanouts)},
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
  texts.merge(TextsOfRun(options));
  return texts;
}

}  // namespace millrace
