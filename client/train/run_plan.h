// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/nn/graph_shape.h"
#include "client/train/run/optimizer.h"
#include "client/train/run/option_texts.h"
#include "client/train/run/train_options.h"
#include "common/graph/manifest.h"
#include "common/graph/schema.h"

namespace millrace {

// A run whose options fit each other and the graph.
struct RunPlan {
  TrainOptions options;  // as given, and completed by what the graph says
  TypeIndex seed_type = 0;
  RelationIndex seed_relation = -1;  // of edge seeds
  std::string seeds_name;            // the seeds' node type or relation
  GraphShape shape;
  LearningRate learning_rate;
  // What the batches depend on besides the options: the fingerprints of the
  // dataset and of the splits that are used, and a checksum of --seeds-file.
  std::string dataset;
  OptionTexts splits;
  uint64_t seeds_checksum = 0;  // 0: no --seeds-file

  bool learns_links() const { return options.task.kind == TaskKind::kLink; }
};

// Finds out from the options and the manifest alone whether a run would fail,
// before it reads a batch or touches a file.
// INVALID_ARGUMENT: options that exclude one another or that the graph does not
// have. FAILED_PRECONDITION: a graph that lacks what is learned or learned
// from. UNIMPLEMENTED: a combination that this version does not have. All name
// the option and say what to do. Errors of ResolveJob.
absl::StatusOr<RunPlan> MakeRunPlan(TrainOptions options,
                                    const Manifest& manifest);

}  // namespace millrace
