// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/nn/graph_shape.h"
#include "client/train/run/optimizer.h"
#include "client/train/run/run_identity.h"
#include "client/train/run/train_options.h"
#include "common/graph/manifest.h"
#include "common/graph/schema.h"

namespace millrace {

// A run whose options fit each other and the graph.
struct RunPlan {
  TrainOptions options;  // as given, completed with what the graph says
  TypeIndex seed_type = 0;
  RelationIndex seed_relation = -1;  // -1 unless the seeds are edges
  std::string seeds_name;            // the seeds' node type or relation
  GraphShape shape;
  LearningRate learning_rate;
  // What the batches depend on besides the options: the fingerprints of the
  // dataset and of the splits that are used, and a checksum of --seeds-file.
  std::string dataset;
  RunIdentity splits;
  uint64_t seeds_checksum = 0;  // 0 without --seeds-file

  bool learns_links() const { return options.task.kind == TaskKind::kLink; }
};

// Plans a run from the options and the manifest alone, to find mistakes before
// it reads a batch or touches a file.
// INVALID_ARGUMENT: options that cannot be used together or do not suit the
// graph.
// FAILED_PRECONDITION: a graph that lacks what is learned or learned from.
// UNIMPLEMENTED: a combination that is not supported. All name the option and
// say what to do. Fails like ResolveJob.
absl::StatusOr<RunPlan> MakeRunPlan(TrainOptions options,
                                    const Manifest& manifest);

}  // namespace millrace
