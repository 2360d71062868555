// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/train_options.h"

#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {

std::string EvaluatedSplit(const std::string& named, const char* usual) {
  return named.empty() ? usual : named;
}

absl::Status CheckComplete(const TrainOptions& options) {
  if (!options.consumed_log.empty() && options.feature_dtype != DType::kNone) {
    return WithAdvice(
        InvalidField({.field = "consumed_log",
                      .limit = StrCat("holds digests of features as they are "
                                      "stored, but a cast to ",
                                      DTypeName(options.feature_dtype),
                                      " changes them on the way")}),
        "leave out one of the two");
  }
  const char* needs_folder = options.keep_best              ? "keep_best"
                             : options.resume               ? "resume"
                             : options.checkpoint_every > 0 ? "checkpoint_every"
                                                            : nullptr;
  if (!options.checkpoint.empty() || needs_folder == nullptr) {
    return absl::OkStatus();
  }
  return InvalidField({.problem = FieldError::Problem::kNeeds,
                       .field = needs_folder,
                       .other_field = "checkpoint"},
                      Reason{"no_checkpoint_folder"});
}

}  // namespace millrace
