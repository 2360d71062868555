// SPDX-License-Identifier: Apache-2.0
// Trainer's models that users bring.
#include "client/train/tensor_dict.h"
#include "client/train/train_check.h"
#include "client/train/trainer.h"
#include "common/base/strings.h"

namespace millrace {

absl::Status Trainer::CheckScript() const {
  const ScriptModel* script = model_->script();
  if (script == nullptr) return absl::OkStatus();
  if (options_.evaluation.kind == InferenceKind::kFull) {
    return absl::UnimplementedError(
        "--inference full runs a model layer by layer, which a script does "
        "not offer\nuse --inference sampled");
  }
  const std::string& file = options_.model.script;
  for (const NamedTensor& named : model_->parameters().State()) {
    const at::ScalarType type = named.tensor.scalar_type();
    if (options_.checkpoint.empty() || IsReadFromFiles(type)) continue;
    return absl::InvalidArgumentError(
        StrCat("tensor ", named.name, " of ", file, " is ", c10::toString(type),
               ", which checkpoints cannot hold\nscript the model with real "
               "numbers in its place, or leave out --checkpoint"));
  }
  const int64_t wanted = options_.model.out;
  const bool classes = options_.task.kind == TaskKind::kSingle;
  const bool fits = learns_links() || script->outputs() == wanted ||
                    (classes && script->outputs() > wanted);
  if (!fits) {
    return absl::InvalidArgumentError(
        StrCat("forward of ", file, " gives ", script->outputs(),
               " columns, but the labels have ", wanted,
               classes ? " classes" : " columns", "\nscript a model with ",
               classes ? "at least " : "", wanted, " outputs"));
  }
  // Averaged gradients of different models would mean nothing.
  return CheckSameOnAllRanks(collectives_, file, script->checksum());
}

}  // namespace millrace
