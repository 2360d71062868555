// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/labels.h"

#include <ATen/ops/isnan.h>

#include <limits>

#include "client/tensor/torch_status.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

absl::Status RefuseFirst(const at::Tensor& broken, const at::Tensor& labels,
                         const char* why, Reason reason) {
  if (!broken.any().item().toBool()) return absl::OkStatus();
  const at::Tensor place = broken.nonzero()[0];
  const int64_t row = place[0].item().toLong();
  const at::Tensor value =
      place.size(0) == 1 ? labels[row] : labels[row][place[1].item().toLong()];
  return WithReason(
      absl::InvalidArgumentError(
          StrCat("label ", value.item().toDouble(), " in row ", row, " ", why)),
      reason);
}

absl::StatusOr<at::Tensor> ClassLabels(at::Tensor labels) {
  if (labels.dim() == 2 && labels.size(1) == 1) labels = labels.squeeze(1);
  if (labels.dim() != 1) {
    return InvalidField(
        {.field = "task",
         .value = "single",
         .limit = StrCat("takes one class per node, but the labels are ",
                         labels.size(1), " columns")},
        Reason{"several_labels_per_node"});
  }
  if (!labels.is_floating_point()) {
    labels = labels.to(at::kLong);
    return labels.masked_fill(labels.lt(0), kUnlabelled);
  }
  const at::Tensor filled =
      labels.to(at::kDouble)
          .masked_fill(at::isnan(labels), double{kUnlabelled});
  const at::Tensor classes = filled.to(at::kLong);
  MILLRACE_RETURN_IF_ERROR(RefuseFirst(classes.to(at::kDouble).ne(filled),
                                       filled, "is not a class number",
                                       Reason{"labels_are_not_classes"}));
  return classes.masked_fill(classes.lt(0), kUnlabelled);
}

absl::StatusOr<at::Tensor> ValueLabels(TaskKind kind, at::Tensor labels) {
  if (labels.dim() == 1) labels = labels.unsqueeze(1);
  if (kind == TaskKind::kBinary && labels.size(1) != 1) {
    return InvalidField(
        {.field = "task",
         .value = "binary",
         .limit = StrCat("takes one value per node, but the labels are ",
                         labels.size(1), " columns")},
        Reason{"several_values_per_node"});
  }
  labels = labels.to(at::kFloat);
  if (kind == TaskKind::kRegression) return labels;
  labels = labels.masked_fill(labels.lt(0),
                              std::numeric_limits<double>::quiet_NaN());
  const at::Tensor fits =
      labels.eq(0).logical_or(labels.eq(1)).logical_or(at::isnan(labels));
  MILLRACE_RETURN_IF_ERROR(RefuseFirst(fits.logical_not(), labels,
                                       "is neither 0 nor 1",
                                       Reason{"labels_are_not_binary"}));
  return labels;
}

}  // namespace

absl::StatusOr<at::Tensor> ReadLabels(TaskKind kind, const at::Tensor& stored) {
  return CatchTorch("reading labels", [&] {
    return kind == TaskKind::kSingle ? ClassLabels(stored)
                                     : ValueLabels(kind, stored);
  });
}

at::Tensor Labelled(const at::Tensor& labels) {
  return labels.is_floating_point() ? at::isnan(labels).logical_not()
                                    : labels.ne(kUnlabelled);
}

int64_t CountLabelled(const at::Tensor& labels) {
  return Labelled(labels).sum().item().toLong();
}

}  // namespace millrace
