// SPDX-License-Identifier: Apache-2.0
#include "client/train/link/link_evaluator.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/loader.h"
#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "client/train/link/link_scores.h"
#include "client/train/task/batch_loop.h"
#include "client/train/task/minibatch.h"
#include "common/base/check.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/resolve_job.h"

namespace millrace {
namespace {

constexpr Reason kOtherNegatives = {"other_eval_negatives"};

constexpr double kDrawnToRank = 100;  // destinations per seed

// Returns the number of seeds of a batch that reads about `chunk` nodes, and
// whose scores do not take much memory.
int64_t SeedsAtOnce(int64_t chunk, const Negatives& negatives) {
  constexpr int64_t kScores = int64_t{1} << 22;
  const auto each =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(negatives.amount)));
  const bool shared = negatives.mode == NegativeMode::kShared;
  return std::max<int64_t>(
      1, std::min(chunk / (shared ? 2 : 2 + each), kScores / each));
}

// Counts the seeds of a batch that are edges in the lists of their relation.
int64_t CountEdges(const Batch& batch) {
  const EdgeBlock& block = batch.edges[batch.edge_seeds.relation];
  const bool in = batch.direction == Direction::kIn;
  const auto src = batch.seed_to_local.As<uint32_t>();
  const auto dst = batch.edge_seeds.dst_local.As<uint32_t>();
  const auto indptr = block.indptr.As<uint32_t>();
  const auto neighbors = block.neighbor.As<uint32_t>();
  int64_t edges = 0;
  for (size_t i = 0; i < src.size(); ++i) {
    const uint32_t owner = in ? dst[i] : src[i];
    const auto list =
        neighbors.subspan(indptr[owner], indptr[owner + 1] - indptr[owner]);
    edges +=
        std::find(list.begin(), list.end(), in ? src[i] : dst[i]) != list.end();
  }
  return edges;
}

}  // namespace

LinkEvaluator::LinkEvaluator(std::shared_ptr<BatchSource> source,
                             const ResolvedJob& job, Model& model,
                             Collectives& collectives, const Splits& splits,
                             const EvaluationOptions& options,
                             const Accelerator& accelerator)
    : source_(std::move(source)),
      job_(job.spec),
      relation_(job.seed_relation),
      model_(model),
      collectives_(collectives),
      splits_(splits),
      options_(options),
      full_(source_, job_, model, collectives, options.inference, accelerator),
      batches_(accelerator),
      ends_(MakeEvaluationCheck(accelerator)),
      known_(splits.known) {}

absl::StatusOr<std::unique_ptr<LinkEvaluator>> LinkEvaluator::Create(
    std::shared_ptr<BatchSource> source, const JobSpec& job, Model& model,
    Collectives& collectives, const Splits& splits,
    const EvaluationOptions& options, const Accelerator& accelerator) {
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob resolved,
                            ResolveJob(job, source->manifest()));
  auto evaluator = std::unique_ptr<LinkEvaluator>(
      new LinkEvaluator(std::move(source), resolved, model, collectives, splits,
                        options, accelerator));
  for (const auto& split : {splits.valid, splits.test}) {
    if (!split.has_value()) continue;
    MILLRACE_RETURN_IF_ERROR(evaluator->Check(*split));
    MILLRACE_RETURN_IF_ERROR(evaluator->CheckUnseen(*split));
  }
  return evaluator;
}

absl::Status LinkEvaluator::CheckUnseen(const std::string& split) const {
  if (options_.kind != InferenceKind::kFull || model_.config().layers == 0) {
    return absl::OkStatus();
  }
  constexpr int64_t kProbed = 64;
  JobSpec job = BareLinkJob(job_, split);
  job.batch_size = kProbed;
  const Schema& schema = source_->manifest().schema;
  job.relation_fanouts[schema.RelationName(relation_)] = {kAllNeighbors};
  LoaderOptions options;
  options.columns.features = false;
  options.columns.labels = LabelRows::kNone;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader,
                            Loader::Create(source_, job, std::move(options)));
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<LoaderStep> step,
                            loader->Next());
  if (!step.has_value() || !step->batch.has_value()) return absl::OkStatus();
  const int64_t seeds = step->batch->seed_count();
  const int64_t edges = CountEdges(*step->batch);
  // Some pairs may also be joined by an edge of another type or time.
  if (2 * edges <= seeds) return absl::OkStatus();
  return InvalidField({.field = "inference",
                       .value = "full",
                       .limit = StrCat("sees the edges of split ", split,
                                       " that are in the graph: ", edges,
                                       " of its first ", seeds)},
                      Reason{"evaluated_edges_in_graph"});
}

absl::Status LinkEvaluator::Check(const std::string& split) const {
  const Task& task = options_.task;
  const EvalNegatives negatives = ChooseNegatives(split);
  if (negatives == EvalNegatives::kAll &&
      (options_.kind == InferenceKind::kSampled || !task.ranks())) {
    return InvalidField(
        {.field = "eval_negatives",
         .value = "all",
         .limit = StrCat("ranks every node, which works only with full "
                         "inference and the metrics mrr and hits@K, not with ",
                         options_.kind == InferenceKind::kSampled
                             ? "sampled inference"
                             : MetricName(task))},
        kOtherNegatives);
  }
  const NegativeMode drawn = ChooseDrawn(negatives).mode;
  if (drawn == NegativeMode::kInBatch) {
    return InvalidField(
        {.field = "eval_negatives",
         .value = "in-batch",
         .limit = "would depend on the batch size of evaluation"},
        kOtherNegatives);
  }
  if (task.ranks() && drawn == NegativeMode::kBinary) {
    return InvalidField(
        {.field = "metric",
         .value = MetricName(task),
         .limit = "ranks an edge among its own negatives, but binary draws "
                  "independent pairs"},
        kOtherNegatives);
  }
  MILLRACE_RETURN_IF_ERROR(CheckEvaluationJob(
      MakeJob(split, ChooseDrawn(negatives)), source_->manifest()));
  return negatives == EvalNegatives::kGiven ? CheckGiven(split)
                                            : absl::OkStatus();
}

absl::Status LinkEvaluator::CheckGiven(const std::string& split) const {
  const EdgeSplitInfo* info = source_->manifest().EdgeSplit(relation_, split);
  const bool labels = info != nullptr && info->label.present();
  if (info == nullptr || info->negatives > 0 ||
      (labels && !options_.task.ranks())) {
    return absl::OkStatus();
  }
  return InvalidField(
      {.field = "eval_negatives",
       .value = "given",
       .limit = StrCat("split ", split,
                       " has neither negatives nor, for rocauc and "
                       "accuracy, labels")},
      Reason{"no_given_negatives"});
}

EvalNegatives LinkEvaluator::ChooseNegatives(const std::string& split) const {
  if (options_.negatives != EvalNegatives::kDefault) return options_.negatives;
  const EdgeSplitInfo* info = source_->manifest().EdgeSplit(relation_, split);
  // Whether labels take the place of negatives, as in training.
  const bool labels = options_.task.negatives == NegativeMode::kNone &&
                      info != nullptr && info->label.present();
  if (labels || (info != nullptr && info->negatives > 0)) {
    return EvalNegatives::kGiven;
  }
  return options_.task.ranks() && options_.kind == InferenceKind::kFull
             ? EvalNegatives::kAll
             : EvalNegatives::kDrawn;
}

Negatives LinkEvaluator::ChooseDrawn(EvalNegatives negatives) const {
  if (negatives != EvalNegatives::kDrawn) return {};
  if (options_.drawn.mode != NegativeMode::kNone) return options_.drawn;
  return options_.task.ranks() ? Negatives{NegativeMode::kTriplet, kDrawnToRank}
                               : Negatives{NegativeMode::kBinary, 1};
}

JobSpec LinkEvaluator::MakeJob(const std::string& split,
                               const Negatives& negatives) const {
  JobSpec job = BareLinkJob(job_, split);
  if (options_.kind == InferenceKind::kSampled) {
    job = SampledJob(job_, options_);
    job.split = split;
  }
  job.negatives = negatives;
  job.batch_size = SeedsAtOnce(options_.inference.chunk, negatives);
  return job;
}

// Scores take copies of the rows in double.
absl::Status LinkEvaluator::CheckEnds(const LinkBatch& links, bool scored) {
  int64_t rows = 0;
  for (const at::Tensor& ids : {links.id.src, links.id.dst,
                                links.id.negative_src, links.id.negative_dst}) {
    if (ids.defined()) rows += ids.size(0);
  }
  constexpr int64_t kValue = sizeof(float), kPrecise = sizeof(double);
  return ends_.Check(StrCat("evaluation of a batch of ", links.size(),
                            " edges and their ", rows, " ends"),
                     SaturatedProduct({rows, model_.config().out,
                                       kValue + (scored ? kPrecise : 0)}));
}

absl::StatusOr<LinkEnds> LinkEvaluator::ComputeEnds(const Batch& batch,
                                                    const LinkBatch& links) {
  const GraphShape& shape = model_.shape();
  if (options_.kind == InferenceKind::kFull) {
    return SendEnds(
        TakeEnds(links.id, rows_[*shape.source_type], rows_[shape.seed_type]),
        model_.device());
  }
  MILLRACE_ASSIGN_OR_RETURN(const Minibatch minibatch,
                            batches_.Make(batch, model_, options_.task));
  const std::vector<at::Tensor> rows =
      model_.ForwardTypes(minibatch.graph, Pass{});
  return TakeEnds(SendEnds(links.row, model_.device()),
                  rows[*shape.source_type], rows[shape.seed_type]);
}

void LinkEvaluator::CountAmongAll(const LinkBatch& links, const LinkEnds& rows,
                                  Metric& metric) const {
  const GraphShape& shape = model_.shape();
  const Decoder& decoder = *model_.decoder();
  const at::Tensor edge_type = Send(links.edge_type, model_.device());
  metric.AddRanks(RanksAmongAll(
      {LinkSide::kDestination, decoder.Query(rows.src, edge_type).cpu(),
       links.edge_type, links.id.src, links.id.dst},
      rows_[shape.seed_type], known_));
  metric.AddRanks(RanksAmongAll(
      {LinkSide::kSource, decoder.Query(rows.dst, edge_type).cpu(),
       links.edge_type, links.id.dst, links.id.src},
      rows_[*shape.source_type], known_));
}

void LinkEvaluator::CountScores(const LinkBatch& links, const LinkEnds& rows,
                                Metric& metric) const {
  // Scores in double, so that equal rows tie whatever the order of additions.
  const auto precise = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.to(at::kDouble) : tensor;
  };
  LinkScores scores =
      ScoreLinks(*model_.decoder(), SendLinks(links, model_.device()),
                 {precise(rows.src), precise(rows.dst),
                  precise(rows.negative_src), precise(rows.negative_dst)},
                 LinkSide::kDestination);
  scores.positive = scores.positive.to(at::kFloat);
  if (scores.negative.defined()) {
    scores.negative = scores.negative.to(at::kFloat);
  }
  if (options_.task.ranks()) {
    return metric.AddRanks(RanksAmongNegatives(scores).cpu());
  }
  const auto add = [&metric](const at::Tensor& score, const at::Tensor& label) {
    metric.Add(score.unsqueeze(1).cpu(), label.unsqueeze(1).cpu());
  };
  if (!scores.negative.defined()) return add(scores.positive, links.label);
  at::Tensor negative = scores.negative.flatten();
  if (scores.counted.defined()) {
    negative = negative.masked_select(scores.counted.flatten());
  }
  add(scores.positive, at::ones_like(scores.positive));
  add(negative, at::zeros_like(negative));
}

absl::Status LinkEvaluator::CountBatch(const Batch& batch, NegativeMode mode,
                                       bool among_all, Metric& metric) {
  MILLRACE_ASSIGN_OR_RETURN(const LinkBatch links, MakeLinkBatch(batch, mode));
  MILLRACE_RETURN_IF_ERROR(CheckEnds(links, /*scored=*/!among_all));
  MILLRACE_ASSIGN_OR_RETURN(const LinkEnds rows, ComputeEnds(batch, links));
  if (among_all) {
    CountAmongAll(links, rows, metric);
  } else {
    CountScores(links, rows, metric);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<double>> LinkEvaluator::Count(
    const std::optional<std::string>& split) {
  Metric metric(options_.task, /*outputs=*/1);
  if (!split.has_value()) return std::nullopt;
  if (options_.inference.all_ranks || collectives_.rank() == 0) {
    const EvalNegatives negatives = ChooseNegatives(*split);
    const JobSpec job = MakeJob(*split, ChooseDrawn(negatives));
    LoaderOptions options = SharedBatches(options_.inference, collectives_);
    options.columns.features = options_.kind == InferenceKind::kSampled;
    options.columns.labels = LabelRows::kNone;
    AskForColumns(model_, options.columns);
    MILLRACE_RETURN_IF_ERROR(ForEachBatch(
        source_, job, std::move(options),
        collectives_.rank() == 0 ? StrCat("evaluate ", *split) : "",
        model_.device(), [&](const Batch& batch) {
          return CountBatch(batch, job.negatives.mode,
                            negatives == EvalNegatives::kAll, metric);
        }));
  }
  MILLRACE_RETURN_IF_ERROR(metric.AddOverRanks(collectives_));
  return metric.Value();
}

absl::Status LinkEvaluator::CheckMemory(bool) const {
  return options_.kind == InferenceKind::kFull
             ? full_.CheckMemory(model_.config().layers, /*for_all=*/true)
             : absl::OkStatus();
}

absl::StatusOr<SplitMetrics> LinkEvaluator::Run() {
  return CatchTorch("evaluation", [&]() -> absl::StatusOr<SplitMetrics> {
    c10::NoGradGuard no_grad;
    if (options_.kind == InferenceKind::kFull) {
      MILLRACE_ASSIGN_OR_RETURN(rows_, full_.RunForAllTypes());
    }
    SplitMetrics metrics;
    MILLRACE_ASSIGN_OR_RETURN(metrics.valid, Count(splits_.valid));
    MILLRACE_ASSIGN_OR_RETURN(metrics.test, Count(splits_.test));
    rows_.clear();
    return metrics;
  });
}

absl::StatusOr<at::Tensor> LinkEvaluator::Predict(bool) {
  MILLRACE_CHECK(options_.kind == InferenceKind::kFull);
  return CatchTorch("prediction", [&]() -> absl::StatusOr<at::Tensor> {
    return full_.RunForAll(model_.config().layers);
  });
}

}  // namespace millrace
