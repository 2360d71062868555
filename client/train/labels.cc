// SPDX-License-Identifier: Apache-2.0
#include "client/train/labels.h"

#include <ATen/ops/isnan.h>

#include "client/tensor/torch_status.h"
#include "common/base/strings.h"

namespace millrace {

absl::StatusOr<at::Tensor> ClassLabels(const at::Tensor& stored) {
  return CatchTorch("reading labels", [&]() -> absl::StatusOr<at::Tensor> {
    at::Tensor labels = stored;
    if (labels.dim() == 2 && labels.size(1) == 1) labels = labels.squeeze(1);
    if (labels.dim() != 1) {
      return absl::UnimplementedError(
          StrCat("the labels are ", labels.size(1),
                 " columns a node; this version trains on one class a node "
                 "(--task single)"));
    }
    if (!labels.is_floating_point()) {
      labels = labels.to(at::kLong);
      return labels.masked_fill(labels.lt(0), kUnlabelled);
    }
    const at::Tensor missing = at::isnan(labels);
    const at::Tensor filled =
        labels.to(at::kDouble).masked_fill(missing, double{kUnlabelled});
    const at::Tensor classes = filled.to(at::kLong);
    const at::Tensor broken = classes.to(at::kDouble).ne(filled);
    if (broken.any().item().toBool()) {
      const int64_t row = broken.nonzero()[0].item().toLong();
      return absl::InvalidArgumentError(
          StrCat("label ", filled[row].item().toDouble(), " in row ", row,
                 " is no class number (--task single needs whole numbers)"));
    }
    return classes.masked_fill(classes.lt(0), kUnlabelled);
  });
}

}  // namespace millrace
