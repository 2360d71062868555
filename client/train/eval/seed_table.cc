// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/seed_table.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "client/train/task/batch_loop.h"
#include "client/train/task/labels.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr int64_t kSeedsPerFetch = 65536;

// One row per seed, in seed order.
absl::StatusOr<at::Tensor> SeedLabels(const Batch& batch, TaskKind task) {
  const Array& stored = batch.nodes[batch.seed_type].label;
  if (!stored.present()) {
    return WithReason(absl::FailedPreconditionError("the seeds have no labels"),
                      Reason{"no_labels"});
  }
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor view, ViewAsTensor(stored));
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor labels, ReadLabels(task, view));
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor rows,
                            ViewAsTensor(batch.seed_to_local));
  return CatchTorch("reading labels", [&]() -> absl::StatusOr<at::Tensor> {
    return labels.index_select(0, rows);
  });
}

}  // namespace

absl::StatusOr<SeedTable> ReadSeedTable(std::shared_ptr<BatchSource> source,
                                        const JobSpec& job, TaskKind task,
                                        const std::string& split,
                                        std::optional<ExplicitSeeds> seeds) {
  JobSpec bare;
  // Graph seeds are nodes of a type; their labels need no graph.
  bare.seed_type = job.seed_kind == SeedKind::kGraph && job.seed_type.empty()
                       ? "graph"
                       : job.seed_type;
  bare.direction = job.direction;
  bare.split = split;
  bare.fanouts = {0};
  bare.batch_size = kSeedsPerFetch;
  bare.shuffle = false;
  LoaderOptions options;
  options.columns.features = false;
  // Labels do not depend on times, which a job that is not temporal refuses.
  if (seeds.has_value()) seeds->times.clear();
  options.seeds = std::move(seeds);
  std::vector<at::Tensor> ids, labels;
  MILLRACE_RETURN_IF_ERROR(ForEachBatch(
      std::move(source), bare, std::move(options), /*what=*/"", at::kCPU,
      [&](const Batch& batch) -> absl::Status {
        MILLRACE_ASSIGN_OR_RETURN(at::Tensor id, ViewAsTensor(batch.seed));
        ids.push_back(std::move(id));
        MILLRACE_ASSIGN_OR_RETURN(at::Tensor label, SeedLabels(batch, task));
        labels.push_back(std::move(label));
        return absl::OkStatus();
      }));
  return CatchTorch("reading a split", [&]() -> absl::StatusOr<SeedTable> {
    const at::Tensor none = at::empty({0}, at::kLong);
    return SeedTable{split, ids.empty() ? none : at::cat(ids),
                     labels.empty() ? none : at::cat(labels)};
  });
}

}  // namespace millrace
