// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/task/link_batch.h"
#include "client/train/task/task.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"

namespace millrace {

// A batch as a model takes it: the subgraph, and the seeds' labels.
struct Minibatch {
  Subgraph graph;
  // Row of the model's result of each seed; undefined when it is the seed's
  // own number (no seed twice).
  at::Tensor seed_rows;  // [seeds] kInt
  at::Tensor labels;     // [seeds] or [seeds, k], as ReadLabels; undefined
                         // without a label column
  int64_t seeds = 0;
  int64_t labelled = 0;            // values in `labels`; of edge seeds: seeds
  std::optional<LinkBatch> links;  // edge seeds, instead of the labels

  // The result's rows of the seeds, in seed order.
  at::Tensor OfSeeds(const at::Tensor& result) const;
};

// Asks in `columns` for what MakeMinibatch reads of a batch besides features
// and labels.
void AskForColumns(const Model& model, Columns& columns);

// Views of the batch's memory, which they keep alive; features other than
// float32 are converted. `model`, which is of the batch's graph, says what
// columns and coefficients it needs.
// FAILED_PRECONDITION: no features (says how to import some).
// Errors of ToTensors and ReadLabels.
absl::StatusOr<Minibatch> MakeMinibatch(const Batch& batch, const Model& model,
                                        const Task& task = {});

}  // namespace millrace
