// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/train_options.h"

#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {

absl::Status CheckComplete(const TrainOptions& options) {
  if (!options.consumed_log.empty() && options.feature_dtype != DType::kNone) {
    return UsageError(
        StrCat("--consumed-log holds digests of features as they are stored, "
               "but --feature-dtype ",
               DTypeName(options.feature_dtype),
               " changes them on the way\nleave out one of the two"));
  }
  const bool needs_folder =
      options.keep_best || options.resume || options.checkpoint_every > 0;
  if (!options.checkpoint.empty() || !needs_folder) return absl::OkStatus();
  return UsageError(
      "--checkpoint DIR is needed by --checkpoint-every, --keep-best and "
      "--resume\nname the folder that checkpoints are in");
}

}  // namespace millrace
