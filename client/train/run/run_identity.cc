// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/run_identity.h"

#include <charconv>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/nn/model_kind.h"
#include "common/base/dtype.h"
#include "common/base/strings.h"
#include "common/sample/job_identity.h"
#include "common/sample/job_options.h"
#include "common/sample/job_texts.h"

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

// Keys are the options that millrace-train has for the fields.
constexpr std::string_view kKeyPrefix = "--";

// Fields that have other words in keys.
constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {
    {"aggregation", "aggr"}, {"bases", "num-bases"}, {"seeds", "seeds-file"}};

RunIdentity ByKey(
    std::initializer_list<std::pair<std::string_view, std::string>> fields) {
  RunIdentity texts;
  for (const auto& [field, text] : fields) texts[IdentityKey(field)] = text;
  return texts;
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

std::string IdentityKey(std::string_view field) {
  std::string word = absl::StrReplaceAll(AbslView(field), {{"_", "-"}});
  if (const JobOption* option = FindJobOption(field); option != nullptr) {
    word = option->option;
  }
  for (const auto& [name, other] : kOtherWords) {
    if (name == field) word = other;
  }
  return StrCat(kKeyPrefix, word);
}

std::string IdentityField(std::string_view key) {
  if (!key.starts_with(kKeyPrefix)) return "";
  const std::string_view word = key.substr(kKeyPrefix.size());
  for (const JobOption& option : JobOptions()) {
    if (option.option == word) return std::string(option.name);
  }
  for (const auto& [name, other] : kOtherWords) {
    if (other == word) return std::string(name);
  }
  return absl::StrReplaceAll(AbslView(word), {{"-", "_"}});
}

RunIdentity IdentifyRun(const TrainOptions& options) {
  const ModelConfig& model = options.model;
  RunIdentity texts = ByKey({
      {"feature_dtype", options.feature_dtype == DType::kNone
                            ? ""
                            : std::string(DTypeName(options.feature_dtype))},
      {"model", std::string(InfoOf(model.kind).name)},
      {"hidden", absl::StrCat(model.hidden)},
      {"layers", absl::StrCat(model.layers)},
      {"dropout", absl::StrCat(model.dropout)},
      {"norm", NormName(model.norm)},
      {"gcn_norm", model.gcn_norm == GcnNorm::kSampled ? "sampled" : "full"},
      {"heads", absl::StrCat(model.heads)},
      {"aggregation", AggregationName(model.aggregation)},
      {"bases", absl::StrCat(model.bases)},
      {"gin_mlp", absl::StrCat(model.gin_mlp)},
      {"readout", AggregationName(model.readout)},
      {"graph_head", model.graph_head ? "mlp" : "none"},
      {"task", TaskName(options.task.kind)},
      {"model_seed", absl::StrCat(model.seed)},
      {"optimizer", OptimizerName(options.optimizer.kind)},
  });
  if (options.task.kind == TaskKind::kLink) {
    texts[IdentityKey("loss")] =
        options.task.loss == LinkLoss::kSoftmax ? "softmax" : "bce";
    texts[IdentityKey("decoder")] =
        model.decoder == DecoderKind::kDistMult ? "distmult" : "dot";
  }
  for (const auto& [option, text] : JobIdentity(options.job)) {
    texts[StrCat(kKeyPrefix, option)] = text;
  }
  return texts;
}

RunIdentity IdentifyGroup(const TrainOptions& options) {
  const EvaluationOptions& evaluation = options.evaluation;
  // These take precedence over those of IdentifyRun(), which has some of them
  // with fewer digits or by content.
  RunIdentity texts = ByKey({
      {"lr", NumberText(options.optimizer.lr)},
      {"weight_decay", NumberText(options.optimizer.weight_decay)},
      {"lr_schedule", options.lr_schedule},
      {"epochs", absl::StrCat(options.epochs)},
      {"patience", absl::StrCat(options.patience)},
      {"metric", MetricName(options.task)},
      {"dropout", NumberText(options.model.dropout)},
      {"classes", absl::StrCat(options.classes)},
      {"inference",
       evaluation.kind == InferenceKind::kFull ? "full" : "sampled"},
      {"eval_fanouts", FormatFanouts(evaluation.fanouts)},
      {"eval_batch_size", absl::StrCat(evaluation.inference.chunk)},
      {"eval_ranks", evaluation.inference.all_ranks ? "all" : "0"},
      {"eval_negatives", EvalNegativesText(evaluation)},
      {"eval_every", absl::StrCat(options.eval_every)},
      {"valid_split", options.valid_split},
      {"test_split", options.test_split},
      {"checkpoint", GivenText(!options.checkpoint.empty())},
      {"checkpoint_every", absl::StrCat(options.checkpoint_every)},
      {"keep_best", YesNo(options.keep_best)},
      {"consumed_log", GivenText(!options.consumed_log.empty())},
      {"seeds", GivenText(options.seeds.has_value())},
      {"order", GivenText(!options.order.empty())},
      {"init", GivenText(!options.init.empty())},
      {"predict", GivenText(!options.predict.empty())},
      {"output", options.predict_embeddings ? "embeddings" : "logits"},
  });
  texts.merge(IdentifyRun(options));
  return texts;
}

}  // namespace millrace
