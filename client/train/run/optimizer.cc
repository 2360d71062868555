// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/optimizer.h"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
constexpr char kMean[] = "exp_avg.";
constexpr char kSquareMean[] = "exp_avg_sq.";

// Copies the tensor `name` of a state.
absl::Status LoadTensor(const std::vector<NamedTensor>& state,
                        const std::string& name, const at::Tensor& into) {
  const auto found = std::find_if(
      state.begin(), state.end(),
      [&name](const NamedTensor& named) { return named.name == name; });
  if (found == state.end()) {
    return absl::InvalidArgumentError(
        StrCat("the optimizer's tensor \"", name, "\" is missing"));
  }
  if (found->tensor.sizes() != into.sizes()) {
    return absl::InvalidArgumentError(
        StrCat("the optimizer's tensor \"", name, "\" is ",
               ShapeText(found->tensor.sizes()), ", but the model's is ",
               ShapeText(into.sizes())));
  }
  into.copy_(found->tensor);
  return absl::OkStatus();
}

}  // namespace

Optimizer::Optimizer(const OptimizerConfig& config,
                     const std::vector<NamedTensor>& parameters)
    : config_(config) {
  int64_t size = 0;
  for (const NamedTensor& parameter : parameters) {
    slices_.push_back({parameter.name, parameter.tensor, size});
    size += parameter.tensor.numel();
  }
  const at::Device device =
      parameters.empty() ? at::kCPU : parameters[0].tensor.device();
  flat_ = at::zeros({size}, at::TensorOptions(at::kFloat).device(device));
  if (config.kind != OptimizerKind::kSgd) {
    mean_ = at::zeros_like(flat_);
    square_mean_ = at::zeros_like(flat_);
  }
}

at::Tensor Optimizer::SliceOf(const at::Tensor& flat,
                              const Slice& slice) const {
  return flat.narrow(0, slice.begin, slice.parameter.numel())
      .view(slice.parameter.sizes());
}

void Optimizer::Step(const at::Tensor& gradient, double lr) {
  c10::NoGradGuard no_grad;
  for (const Slice& slice : slices_) {
    SliceOf(flat_, slice).copy_(slice.parameter);
  }
  ++steps_;
  at::Tensor descent = gradient;
  if (config_.weight_decay != 0) {
    if (config_.kind == OptimizerKind::kAdamW) {
      flat_.mul_(1.0 - lr * config_.weight_decay);
    } else {
      descent = gradient.add(flat_, config_.weight_decay);
    }
  }
  if (config_.kind == OptimizerKind::kSgd) {
    flat_.add_(descent, -lr);
  } else {
    const auto steps = static_cast<double>(steps_);
    mean_.lerp_(descent, 1.0 - kBeta1);
    square_mean_.mul_(kBeta2).addcmul_(descent, descent, 1.0 - kBeta2);
    const double correction1 = 1.0 - std::pow(kBeta1, steps);
    const double correction2 = 1.0 - std::pow(kBeta2, steps);
    const at::Tensor denominator =
        square_mean_.sqrt().div_(std::sqrt(correction2)).add_(kEpsilon);
    flat_.addcdiv_(mean_, denominator, -lr / correction1);
  }
  for (const Slice& slice : slices_) {
    slice.parameter.copy_(SliceOf(flat_, slice));
  }
}

std::vector<NamedTensor> Optimizer::State() const {
  std::vector<NamedTensor> state;
  if (!mean_.defined()) return state;
  for (const Slice& slice : slices_) {
    state.push_back({kMean + slice.name, HostCopy(SliceOf(mean_, slice))});
    state.push_back(
        {kSquareMean + slice.name, HostCopy(SliceOf(square_mean_, slice))});
  }
  return state;
}

absl::Status Optimizer::Load(const std::vector<NamedTensor>& state,
                             int64_t steps) {
  steps_ = steps;
  if (!mean_.defined()) return absl::OkStatus();
  return CatchTorch("loading the optimizer", [&]() -> absl::Status {
    for (const Slice& slice : slices_) {
      MILLRACE_RETURN_IF_ERROR(
          LoadTensor(state, kMean + slice.name, SliceOf(mean_, slice)));
      MILLRACE_RETURN_IF_ERROR(LoadTensor(state, kSquareMean + slice.name,
                                          SliceOf(square_mean_, slice)));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<LearningRate> LearningRate::Parse(const std::string& schedule,
                                                 double lr, uint32_t epochs) {
  LearningRate rate;
  rate.lr_ = lr;
  if (!(lr > 0)) {
    return InvalidField({.problem = FieldError::Problem::kOutOfRange,
                         .field = "lr",
                         .value = StrCat(lr),
                         .limit = "above 0"});
  }
  if (schedule == "constant" || schedule == "none") return rate;
  if (schedule == "cosine") {
    rate.kind_ = Kind::kCosine;
    rate.epochs_ = std::max(epochs, 1u);
    return rate;
  }
  const std::vector<std::string> parts = absl::StrSplit(schedule, ':');
  if (parts.size() == 3 && parts[0] == "step" &&
      absl::SimpleAtoi(parts[1], &rate.epochs_) && rate.epochs_ > 0 &&
      absl::SimpleAtod(parts[2], &rate.factor_) && rate.factor_ > 0) {
    rate.kind_ = Kind::kStep;
    return rate;
  }
  return InvalidField(
      {.field = "lr_schedule",
       .value = StrCat("\"", schedule, "\""),
       .limit = "is not one of constant, cosine and step:EPOCHS:FACTOR"});
}

double LearningRate::At(uint32_t epoch) const {
  switch (kind_) {
    case Kind::kCosine:
      return lr_ * 0.5 * (1.0 + std::cos(std::numbers::pi * epoch / epochs_));
    case Kind::kStep:
      return lr_ * std::pow(factor_, epoch / epochs_);
    case Kind::kConstant:
      break;
  }
  return lr_;
}

}  // namespace millrace
