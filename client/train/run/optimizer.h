// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/parameters.h"

namespace millrace {

enum class OptimizerKind { kAdam, kAdamW, kSgd };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdam;
  double lr = 0.003;
  double weight_decay = 0.0;  // kAdamW: decoupled; else added to the gradient
};

// Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) and plain
// gradient descent with torch.optim's arithmetic and defaults (betas 0.9 and
// 0.999, eps 1e-8, no momentum), over one flat gradient.
// Threads: one at a time.
class Optimizer {
 public:
  // Keeps references to the tensors of `parameters`, which are on one device.
  Optimizer(const OptimizerConfig& config,
            const std::vector<NamedTensor>& parameters);

  // Takes one step with learning rate `lr`. `gradient` is [size()] kFloat on
  // the parameters' device, the gradients of all parameters in their order.
  // Throws what LibTorch throws.
  void Step(const at::Tensor& gradient, double lr);

  // Elements of the flat gradient.
  int64_t size() const { return flat_.numel(); }
  int64_t steps() const { return steps_; }

  // Returns copies of the state on the CPU, for checkpoints: "exp_avg.NAME" and
  // "exp_avg_sq.NAME" in the shape of each parameter; none for kSgd.
  std::vector<NamedTensor> State() const;
  // Restores what State() and steps() returned. INVALID_ARGUMENT: a tensor is
  // missing or has another shape (names it and both shapes).
  absl::Status Load(const std::vector<NamedTensor>& state, int64_t steps);

 private:
  struct Slice {
    std::string name;
    at::Tensor parameter;
    int64_t begin;
  };
  at::Tensor SliceOf(const at::Tensor& flat, const Slice& slice) const;

  const OptimizerConfig config_;
  std::vector<Slice> slices_;
  int64_t steps_ = 0;
  at::Tensor flat_;         // the parameters, gathered for the step
  at::Tensor mean_;         // first moment; undefined for kSgd
  at::Tensor square_mean_;  // second moment; undefined for kSgd
};

// The learning rate as a function of the epoch.
class LearningRate {
 public:
  // "constant" (or "none"); "cosine" (from lr to 0 over all epochs);
  // "step:N:F" (times F every N epochs). INVALID_ARGUMENT: anything else.
  static absl::StatusOr<LearningRate> Parse(const std::string& schedule,
                                            double lr, uint32_t epochs);

  double At(uint32_t epoch) const;

 private:
  enum class Kind { kConstant, kCosine, kStep };
  Kind kind_ = Kind::kConstant;
  double lr_ = 0;
  uint32_t epochs_ = 1;  // kCosine: in the run; kStep: in one step
  double factor_ = 1;
};

}  // namespace millrace
