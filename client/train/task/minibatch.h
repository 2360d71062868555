// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/task/link_batch.h"
#include "client/train/task/task.h"
#include "common/sample/batch.h"
#include "common/sample/job.h"

namespace millrace {

// A batch in the form that models take: the subgraph, and the seeds' labels.
struct Minibatch {
  Subgraph graph;
  // Row of each seed in the model's result; undefined if seed i has row i
  // (because no seed occurs twice).
  at::Tensor seed_rows;  // [seeds] kInt
  at::Tensor labels;     // [seeds] or [seeds, k], see ReadLabels; undefined
                         // without a label column
  int64_t seeds = 0;
  int64_t labelled = 0;            // labelled values; for edge seeds, `seeds`
  std::optional<LinkBatch> links;  // for edge seeds, instead of labels

  // Returns the rows of the seeds, in seed order.
  at::Tensor OfSeeds(const at::Tensor& result) const;
};

// Sets in `columns` what MakeMinibatch needs besides features and labels.
void AskForColumns(const Model& model, Columns& columns);

// Bytes that MakeMinibatch allocates at least on the model's device for the
// features and lists of a batch; 0 on the CPU.
uint64_t CopyBytes(const Batch& batch, const Model& model);

// Makes a minibatch on the model's device: of views of the batch's memory, as
// far as that is there, which they keep alive, and of copies. Converts features
// other than float32. `model`, which must be for the batch's graph, says which
// columns and coefficients it needs. Copies run in the device's current stream;
// those of pinned memory may not have ended when this returns. Calls
// `begin_copies`, which may be null, after the host's part of the work, when
// only copies and work of the device are left.
// FAILED_PRECONDITION: a column is missing (says how to get it).
// Fails like ToTensors and ReadLabels.
absl::StatusOr<Minibatch> MakeMinibatch(
    const Batch& batch, const Model& model, const Task& task = {},
    const std::function<void()>& begin_copies = nullptr);

}  // namespace millrace
