// SPDX-License-Identifier: Apache-2.0
// The words for values of TrainOptions. The flags of millrace-train, their help
// and the identity of a run all come from these tables; a word that checkpoints
// have in their identity must not change as long as old checkpoints are read.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/nn/aggregate.h"
#include "client/nn/decoder.h"
#include "client/nn/norm.h"
#include "client/nn/precision.h"
#include "client/train/device/reducer.h"
#include "client/train/eval/evaluator.h"
#include "client/train/run/optimizer.h"
#include "client/train/task/task.h"

namespace millrace {

template <typename Value>
struct ValueWord {
  std::string_view word;
  Value value;
};

// Each in the order of --help.
inline constexpr ValueWord<NormKind> kNormWords[] = {
    {"none", NormKind::kNone},
    {"batch", NormKind::kBatch},
    {"layer", NormKind::kLayer}};
// For neighbours and, as a readout, for a graph's nodes.
inline constexpr ValueWord<Aggregation> kAggregationWords[] = {
    {"mean", Aggregation::kMean},
    {"sum", Aggregation::kSum},
    {"max", Aggregation::kMax}};
inline constexpr ValueWord<GcnNorm> kGcnNormWords[] = {
    {"full", GcnNorm::kFull}, {"sampled", GcnNorm::kSampled}};
// For ModelConfig::graph_head.
inline constexpr ValueWord<bool> kGraphHeadWords[] = {{"mlp", true},
                                                      {"none", false}};
inline constexpr ValueWord<DecoderKind> kDecoderWords[] = {
    {"dot", DecoderKind::kDot}, {"distmult", DecoderKind::kDistMult}};
inline constexpr ValueWord<LinkLoss> kLossWords[] = {
    {"bce", LinkLoss::kBce}, {"softmax", LinkLoss::kSoftmax}};
inline constexpr ValueWord<OptimizerKind> kOptimizerWords[] = {
    {"adam", OptimizerKind::kAdam},
    {"adamw", OptimizerKind::kAdamW},
    {"sgd", OptimizerKind::kSgd}};
inline constexpr ValueWord<Precision> kPrecisionWords[] = {
    {"float32", Precision::kFloat32}, {"bf16", Precision::kBfloat16}};
inline constexpr ValueWord<InferenceKind> kInferenceWords[] = {
    {"full", InferenceKind::kFull}, {"sampled", InferenceKind::kSampled}};
// kDrawn has the words of Negatives, kDefault none.
inline constexpr ValueWord<EvalNegatives> kEvalNegativesWords[] = {
    {"all", EvalNegatives::kAll}, {"given", EvalNegatives::kGiven}};
// For InferenceOptions::all_ranks.
inline constexpr ValueWord<bool> kEvalRanksWords[] = {{"0", false},
                                                      {"all", true}};
inline constexpr ValueWord<Backend> kBackendWords[] = {
    {"gloo", Backend::kGloo}, {"nccl", Backend::kNccl}};
// For TrainOptions::predict_embeddings.
inline constexpr ValueWord<bool> kOutputWords[] = {{"logits", false},
                                                   {"embeddings", true}};

// Returns the word for a value, or the first word if the value has none.
template <typename Value, size_t kCount>
std::string WordFor(const ValueWord<Value> (&words)[kCount], Value value) {
  for (const ValueWord<Value>& each : words) {
    if (each.value == value) return std::string(each.word);
  }
  return std::string(words[0].word);
}

// Returns the value that a word is for; nullopt for other words.
template <typename Value, size_t kCount>
std::optional<Value> ValueOf(const ValueWord<Value> (&words)[kCount],
                             std::string_view word) {
  for (const ValueWord<Value>& each : words) {
    if (each.word == word) return each.value;
  }
  return std::nullopt;
}

template <typename Value, size_t kCount>
std::vector<std::string> WordsIn(const ValueWord<Value> (&words)[kCount]) {
  std::vector<std::string> list;
  for (const ValueWord<Value>& each : words) list.emplace_back(each.word);
  return list;
}

}  // namespace millrace
