// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_model.h"

#include <string>
#include <vector>

#include "client/nn/model_kind.h"
#include "client/tensor/torch_status.h"
#include "client/train/run/tensor_dict.h"
#include "client/train/run/train_check.h"
#include "client/train/run/weights_file.h"
#include "common/base/field_error.h"
#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Each parameter takes memory for its value, its gradient, the exchange between
// ranks, and what the optimizer keeps.
absl::Status CheckModelMemory(const RunPlan& plan, const ModelConfig& model,
                              const Accelerator& accelerator) {
  if (model.kind == ModelKind::kScript) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const int64_t values,
                            Model::CountParameters(model, plan.shape));
  const int64_t copies =
      plan.options.optimizer.kind == OptimizerKind::kSgd ? 4 : 6;
  constexpr int64_t kValue = sizeof(float);
  const int ranks = plan.options.ranks_on_host;
  const MemoryNeed need = {
      .process = SaturatedProduct({values, kValue, copies}),
      .host = SaturatedProduct({values, kValue, copies, ranks})};
  return WithReason(
      accelerator.CheckMemory(
          StrCat("training a model with ", model.in, " features, ",
                 model.hidden, " hidden columns and ", model.out,
                 " outputs in ", ranks, ranks == 1 ? " trainer" : " trainers"),
          need),
      Reason{"model_too_large"});
}

absl::Status CheckScriptTensors(const Model& model, const std::string& file) {
  for (const NamedTensor& named : model.parameters().State()) {
    const at::ScalarType type = named.tensor.scalar_type();
    if (IsReadFromFiles(type)) continue;
    return WithReason(
        absl::InvalidArgumentError(StrCat("tensor ", named.name, " of ", file,
                                          " is ", c10::toString(type),
                                          ", which checkpoints cannot hold")),
        Reason{"tensor_not_saved"});
  }
  return absl::OkStatus();
}

// `wanted` is the number of outputs that the labels need.
absl::Status CheckScriptOutputs(const RunPlan& plan, const ScriptModel& script,
                                int64_t wanted) {
  const bool classes = plan.options.task.kind == TaskKind::kSingle;
  const bool fits = plan.learns_links() || script.outputs() == wanted ||
                    (classes && script.outputs() > wanted);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("forward of ", plan.options.model.script, " gives ",
             script.outputs(), " columns, but the labels have ", wanted,
             classes ? " classes" : " columns", "\nscript a model with ",
             classes ? "at least " : "", wanted, " outputs"));
}

// Copies rank 0's values to every rank, as bytes, because a script's tensors
// may have any dtype and any strides.
absl::Status ShareTensor(Collectives& collectives, const at::Tensor& tensor) {
  const at::Tensor own = tensor.detach();
  if (own.numel() == 0) return absl::OkStatus();
  const at::Tensor bytes = own.cpu().reshape({-1}).view(at::kByte);
  MILLRACE_RETURN_IF_ERROR(collectives.Broadcast(bytes, 0));
  own.copy_(bytes.view(own.scalar_type()).view(own.sizes()));
  return absl::OkStatus();
}

// The error of weights that do not fit, which says what would.
absl::Status RefuseWeights(const TrainOptions& options,
                           const absl::Status& why) {
  const ModelConfig& model = options.model;
  const FieldError error = {.field = "init",
                            .value = options.init,
                            .limit = std::string(why.message())};
  if (model.kind != ModelKind::kScript) {
    return FieldStatus(why.code(), error, Reason{"weights_of_other_model"});
  }
  return WithAdvice(
      FieldStatus(why.code(), error),
      StrCat("give the state_dict of the module in ", model.script,
             model.decoder == DecoderKind::kDistMult
                 ? ", and the decoder's rel_emb.weight"
                 : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> MakeRunModel(const RunPlan& plan,
                                                    const ModelConfig& config,
                                                    Collectives& collectives,
                                                    Accelerator& accelerator) {
  MILLRACE_RETURN_IF_ERROR(CheckModelMemory(plan, config, accelerator));
  // No rank may take memory before all ranks have checked what is available.
  MILLRACE_RETURN_IF_ERROR(collectives.Barrier());
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model,
      Model::Create(config, plan.shape, accelerator.device()));
  const ScriptModel* script = model->script();
  if (script == nullptr) return model;
  if (!plan.options.checkpoint.empty()) {
    MILLRACE_RETURN_IF_ERROR(CheckScriptTensors(*model, config.script));
  }
  MILLRACE_RETURN_IF_ERROR(CheckScriptOutputs(plan, *script, config.out));
  // Averaged gradients of different models would mean nothing.
  MILLRACE_RETURN_IF_ERROR(
      CheckSameOnAllRanks(collectives, config.script, script->checksum()));
  return model;
}

absl::Status ReadInitialWeights(const TrainOptions& options,
                                Collectives& collectives, Model& model) {
  if (collectives.rank() == 0) {
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> weights,
                              ReadWeights(options.init));
    const absl::Status loaded = model.parameters().Load(weights);
    if (!loaded.ok()) {
      return RefuseWeights(options, loaded);
    }
  }
  return CatchTorch("sharing weights", [&]() -> absl::Status {
    for (const NamedTensor& named : model.parameters().State()) {
      MILLRACE_RETURN_IF_ERROR(ShareTensor(collectives, named.tensor));
    }
    return absl::OkStatus();
  });
}

}  // namespace millrace
