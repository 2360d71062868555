// SPDX-License-Identifier: Apache-2.0
#include "client/train/evaluator.h"

namespace millrace {

JobSpec SampledJob(const JobSpec& trained, const EvaluationOptions& options) {
  JobSpec job = trained;
  job.train_graph.clear();
  job.shuffle = false;
  job.drop_last = false;
  job.seed_order = SeedOrder::kGlobal;
  if (!options.fanouts.empty()) {
    job.fanouts = options.fanouts;
    job.relation_fanouts.clear();
  }
  return job;
}

LoaderOptions SharedBatches(const InferenceOptions& inference,
                            const Collectives& collectives) {
  LoaderOptions options;
  options.rank = inference.all_ranks ? collectives.rank() : 0;
  options.world = inference.all_ranks ? collectives.world() : 1;
  options.prefetch_batches = inference.prefetch_batches;
  options.prefetch_bytes = inference.prefetch_bytes;
  return options;
}

}  // namespace millrace
