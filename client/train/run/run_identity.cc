// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/run_identity.h"

#include <charconv>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/field_words.h"
#include "client/nn/model_kind.h"
#include "client/train/run/train_words.h"
#include "common/base/dtype.h"
#include "common/base/strings.h"
#include "common/sample/job_identity.h"
#include "common/sample/job_options.h"
#include "common/sample/job_texts.h"

namespace millrace {
namespace {

const char* YesNo(bool value) { return value ? "yes" : "no"; }

// Returns the shortest text that no other number has.
std::string NumberText(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}

// Keys are the options that millrace-train has for the fields.
constexpr std::string_view kKeyPrefix = "--";

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
    case EvalNegatives::kDefault:
      return StrCat("default, ", WordFor(kInferenceWords, evaluation.kind));
    case EvalNegatives::kDrawn:
      return FormatNegatives(evaluation.drawn);
    default:
      return WordFor(kEvalNegativesWords, evaluation.negatives);
  }
}

std::string IdentityKey(std::string_view field) {
  return StrCat(kKeyPrefix, WordOfField(field));
}

std::string IdentityField(std::string_view key) {
  if (!key.starts_with(kKeyPrefix)) return "";
  return FieldOfWord(key.substr(kKeyPrefix.size()));
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
      {"norm", WordFor(kNormWords, model.norm)},
      {"gcn_norm", WordFor(kGcnNormWords, model.gcn_norm)},
      {"heads", absl::StrCat(model.heads)},
      {"aggregation", WordFor(kAggregationWords, model.aggregation)},
      {"bases", absl::StrCat(model.bases)},
      {"gin_mlp", absl::StrCat(model.gin_mlp)},
      {"readout", WordFor(kAggregationWords, model.readout)},
      {"graph_head", WordFor(kGraphHeadWords, model.graph_head)},
      {"precision", WordFor(kPrecisionWords, model.precision)},
      {"task", TaskName(options.task.kind)},
      {"model_seed", absl::StrCat(model.seed)},
      {"optimizer", WordFor(kOptimizerWords, options.optimizer.kind)},
  });
  if (options.task.kind == TaskKind::kLink) {
    texts[IdentityKey("loss")] = WordFor(kLossWords, options.task.loss);
    texts[IdentityKey("decoder")] = WordFor(kDecoderWords, model.decoder);
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
      {"inference", WordFor(kInferenceWords, evaluation.kind)},
      {"eval_fanouts", FormatFanouts(evaluation.fanouts)},
      {"eval_batch_size", absl::StrCat(evaluation.inference.chunk)},
      {"eval_ranks", WordFor(kEvalRanksWords, evaluation.inference.all_ranks)},
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
      {"output", WordFor(kOutputWords, options.predict_embeddings)},
  });
  texts.merge(IdentifyRun(options));
  return texts;
}

}  // namespace millrace
