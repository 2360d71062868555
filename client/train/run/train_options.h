// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/nn/model_config.h"
#include "client/train/eval/evaluator.h"
#include "client/train/run/optimizer.h"
#include "client/train/task/task.h"
#include "common/base/dtype.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/job.h"

namespace millrace {

// The usual names of the splits that are evaluated.
inline constexpr char kValidSplit[] = "valid";
inline constexpr char kTestSplit[] = "test";

// Returns the split to evaluate: `named`, an option's value, or `usual` if that
// is empty. Only a split that no option names may be missing; then it is not
// evaluated.
std::string EvaluatedSplit(const std::string& named, const char* usual);

// Everything about a run except its source and its group. Members are named
// after the command line's options.
struct TrainOptions {
  JobSpec job;
  std::optional<ExplicitSeeds> seeds;  // instead of the job's split
  DType feature_dtype = DType::kNone;  // cast on the wire
  int prefetch_batches = 4;
  int64_t prefetch_bytes = int64_t{1} << 30;

  // File for ReadTrainingOrder() of the job's seeds, which are then not
  // shuffled; empty for none.
  std::string order;

  ModelConfig model;  // `in` and `out` come from the data
  std::string init;   // file for ReadWeights(); empty to use the model's seed
  Task task;
  int64_t classes = 0;  // for kSingle; 0 for as many as the labels need
  OptimizerConfig optimizer;
  std::string lr_schedule = "constant";
  uint32_t epochs = 10;
  uint32_t patience = 0;  // evaluations without a better valid; 0 for no limit

  EvaluationOptions evaluation;
  std::string valid_split;  // empty for kValidSplit if there is one
  std::string test_split;   // empty for kTestSplit if there is one
  uint32_t eval_every = 1;  // epochs; 0 for only after the last

  std::string checkpoint;         // folder; empty for none
  uint32_t checkpoint_every = 0;  // steps; 0 for only at the end of each epoch
  bool keep_best = false;
  bool resume = false;  // rank 0's applies to all ranks

  std::string predict;  // file; empty for none
  bool predict_embeddings = false;

  int ranks_on_host = 1;  // ranks that share the host's memory

  std::string metrics_json;
  uint32_t log_every = 0;  // steps; 0 for epochs only
  std::string consumed_log;
};

// INVALID_ARGUMENT: an option lacks another one or excludes it, whatever is
// trained.
absl::Status CheckComplete(const TrainOptions& options);

}  // namespace millrace
