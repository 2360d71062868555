// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/node_evaluator.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <numeric>
#include <utility>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "client/train/task/batch_loop.h"
#include "common/base/check.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/resolve_job.h"

namespace millrace {
namespace {

std::vector<int64_t> ToVector(const at::Tensor& ids) {
  const at::Tensor whole = ids.contiguous();
  const int64_t* data = whole.const_data_ptr<int64_t>();
  return {data, data + whole.numel()};
}

}  // namespace

NodeEvaluator::NodeEvaluator(std::shared_ptr<BatchSource> source,
                             const JobSpec& job, Model& model,
                             Collectives& collectives, Tables tables,
                             const EvaluationOptions& options,
                             const Accelerator& accelerator)
    : source_(std::move(source)),
      job_(job),
      model_(model),
      collectives_(collectives),
      tables_(std::move(tables)),
      options_(options),
      full_(source_, job_, model, collectives, options.inference, accelerator),
      batches_(accelerator) {}

std::vector<const SeedTable*> NodeEvaluator::CountedTables() const {
  const auto pointer = [](const std::optional<SeedTable>& table) {
    return table.has_value() ? &*table : nullptr;
  };
  const bool train = options_.kind == InferenceKind::kFull;
  return {train ? pointer(tables_.train) : nullptr, pointer(tables_.valid),
          pointer(tables_.test)};
}

absl::Status NodeEvaluator::CountFull(
    const std::vector<const SeedTable*>& tables, std::vector<Metric>& metrics) {
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor logits,
                            full_.Run(model_.config().layers));
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i] == nullptr) continue;
    const at::Tensor& ids = tables[i]->original_id;
    const at::Tensor mine = ids.ge(full_.begin())
                                .logical_and(ids.lt(full_.end()))
                                .nonzero()
                                .squeeze(1);
    const at::Tensor rows = ids.index_select(0, mine).sub(full_.begin());
    metrics[i].Add(logits.index_select(0, rows),
                   tables[i]->label.index_select(0, mine));
  }
  return absl::OkStatus();
}

template <typename Use>
absl::Status NodeEvaluator::ForEachSampled(const std::string& what,
                                           std::vector<int64_t> seeds,
                                           Use&& use) {
  if (!options_.inference.all_ranks && collectives_.rank() != 0) {
    return absl::OkStatus();
  }
  JobSpec job = SampledJob(job_, options_);
  job.split.clear();
  job.batch_size = options_.inference.chunk;
  LoaderOptions options = SharedBatches(options_.inference, collectives_);
  AskForColumns(model_, options.columns);
  options.seeds.emplace().ids = std::move(seeds);
  c10::NoGradGuard no_grad;
  return ForEachBatch(
      source_, job, std::move(options), collectives_.rank() == 0 ? what : "",
      model_.device(), [&](const Batch& batch) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(const Minibatch minibatch,
                                  batches_.Make(batch, model_, options_.task));
        return use(batch, minibatch,
                   minibatch.OfSeeds(model_.Forward(minibatch.graph, Pass{})));
      });
}

absl::Status NodeEvaluator::CountSampled(const SeedTable& table,
                                         Metric& metric) {
  return ForEachSampled(StrCat("evaluate ", table.split),
                        ToVector(table.original_id),
                        [&metric](const Batch&, const Minibatch& minibatch,
                                  const at::Tensor& logits) {
                          if (minibatch.labels.defined()) {
                            metric.Add(logits.cpu(), minibatch.labels.cpu());
                          }
                          return absl::OkStatus();
                        });
}

absl::StatusOr<int64_t> NodeEvaluator::SeedNodes() const {
  MILLRACE_ASSIGN_OR_RETURN(const ResolvedJob job,
                            ResolveJob(job_, source_->manifest()));
  return source_->manifest().schema.node_types[job.seed_type].count;
}

absl::Status NodeEvaluator::CheckMemory(bool predicts) const {
  if (options_.kind == InferenceKind::kFull) {
    return full_.CheckMemory(model_.config().layers, /*for_all=*/predicts);
  }
  if (!predicts) return absl::OkStatus();
  constexpr int64_t kValue = sizeof(float);
  MILLRACE_ASSIGN_OR_RETURN(const int64_t nodes, SeedNodes());
  const int64_t columns = model_.config().out;
  const int ranks = options_.inference.ranks_on_host;
  return WithReason(
      millrace::CheckMemory(
          StrCat("predicting ", nodes, " nodes and ", columns, " columns in ",
                 ranks, ranks == 1 ? " trainer" : " trainers"),
          MemoryNeed{
              .process = SaturatedProduct({nodes, columns, kValue}),
              .host = SaturatedProduct({nodes, columns, kValue, ranks})}),
      Reason{"predictions_too_large"});
}

absl::StatusOr<SplitMetrics> NodeEvaluator::Run() {
  return CatchTorch("evaluation", [&]() -> absl::StatusOr<SplitMetrics> {
    const std::vector<const SeedTable*> tables = CountedTables();
    std::vector<Metric> metrics;
    for (size_t i = 0; i < tables.size(); ++i) {
      metrics.emplace_back(options_.task, model_.config().out);
    }
    if (options_.kind == InferenceKind::kFull) {
      MILLRACE_RETURN_IF_ERROR(CountFull(tables, metrics));
    } else {
      for (size_t i = 0; i < tables.size(); ++i) {
        if (tables[i] == nullptr) continue;
        MILLRACE_RETURN_IF_ERROR(CountSampled(*tables[i], metrics[i]));
      }
    }
    for (Metric& metric : metrics) {
      MILLRACE_RETURN_IF_ERROR(metric.AddOverRanks(collectives_));
    }
    return SplitMetrics{metrics[0].Value(), metrics[1].Value(),
                        metrics[2].Value()};
  });
}

absl::StatusOr<at::Tensor> NodeEvaluator::PredictSampled() {
  MILLRACE_ASSIGN_OR_RETURN(const int64_t nodes, SeedNodes());
  std::vector<int64_t> seeds(static_cast<size_t>(nodes));
  std::iota(seeds.begin(), seeds.end(), 0);
  // Each row is zero on all ranks but one, so the sum is that rank's row.
  at::Tensor rows = at::zeros({nodes, model_.config().out}, at::kFloat);
  MILLRACE_RETURN_IF_ERROR(
      ForEachSampled("predict", std::move(seeds),
                     [&rows](const Batch& batch, const Minibatch&,
                             const at::Tensor& logits) -> absl::Status {
                       MILLRACE_ASSIGN_OR_RETURN(const at::Tensor ids,
                                                 ViewAsTensor(batch.seed));
                       rows.index_copy_(0, ids, logits.cpu());
                       return absl::OkStatus();
                     }));
  MILLRACE_RETURN_IF_ERROR(collectives_.AllReduceSum(rows));
  return rows;
}

absl::StatusOr<at::Tensor> NodeEvaluator::Predict(bool embeddings) {
  const int layers = model_.config().layers - (embeddings ? 1 : 0);
  const bool sampled = options_.kind == InferenceKind::kSampled;
  MILLRACE_CHECK(layers > 0 && !(embeddings && sampled));
  return CatchTorch("prediction", [&]() -> absl::StatusOr<at::Tensor> {
    at::Tensor rows;
    if (sampled) {
      MILLRACE_ASSIGN_OR_RETURN(rows, PredictSampled());
    } else {
      MILLRACE_ASSIGN_OR_RETURN(rows, full_.RunForAll(layers));
    }
    return rows;
  });
}

}  // namespace millrace
