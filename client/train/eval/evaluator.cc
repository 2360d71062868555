// SPDX-License-Identifier: Apache-2.0
#include "client/train/eval/evaluator.h"

#include "client/tensor/torch_status.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/resolve_job.h"

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

absl::Status CheckEvaluationJob(const JobSpec& job, const Manifest& manifest) {
  absl::Status status = ResolveJob(job, manifest).status();
  std::optional<FieldError> error = GetFieldError(status);
  if (!error.has_value()) return status;
  const auto rename = [](std::string& field) {
    if (field == "fanouts" || field == "negatives") {
      field = StrCat("eval_", field);
    }
  };
  rename(error->field);
  rename(error->other_field);
  return FieldStatus(status.code(), *error, Reason{ReasonOf(status)});
}

LoaderOptions SharedBatches(const InferenceOptions& inference,
                            const Collectives& collectives) {
  LoaderOptions options;
  options.rank = inference.all_ranks ? collectives.rank() : 0;
  options.world = inference.all_ranks ? collectives.world() : 1;
  options.prefetch_batches = inference.prefetch_batches;
  options.prefetch_bytes = inference.prefetch_bytes;
  options.memory = inference.memory;
  return options;
}

MemoryCheck MakeEvaluationCheck(const Accelerator& accelerator) {
  return {accelerator, Reason{"evaluation_batch_too_large"}};
}

absl::StatusOr<Minibatch> SampledBatches::Make(const Batch& batch,
                                               const Model& model,
                                               const Task& task) {
  const std::string what =
      StrCat("evaluation of a batch of ", batch.seed_count(), " seeds");
  MILLRACE_RETURN_IF_ERROR(copies_.Check(what, CopyBytes(batch, model)));
  MILLRACE_ASSIGN_OR_RETURN(Minibatch minibatch,
                            MakeMinibatch(batch, model, task));
  MILLRACE_RETURN_IF_ERROR(
      passes_.Check(what, model.PassBytes(minibatch.graph)));
  return minibatch;
}

absl::Status OfEvaluation(const absl::Status& error) {
  if (IsOutOfDeviceMemory(error)) {
    return WithReason(error, Reason{"evaluation_out_of_device_memory"});
  }
  return IsOutOfMemory(error)
             ? WithReason(error, Reason{"evaluation_out_of_memory"})
             : error;
}

}  // namespace millrace
