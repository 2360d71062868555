// SPDX-License-Identifier: Apache-2.0
#include "client/nn/parameters.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <c10/core/TensorOptions.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

const NamedTensor* Find(const std::vector<NamedTensor>& tensors,
                        std::string_view name) {
  for (const NamedTensor& named : tensors) {
    if (named.name == name) return &named;
  }
  return nullptr;
}

// Whether `state` has a value for `tensor` under another of its names.
bool HasOtherName(const std::vector<NamedTensor>& own, const at::Tensor& tensor,
                  const std::vector<NamedTensor>& state) {
  return std::any_of(own.begin(), own.end(), [&](const NamedTensor& named) {
    return named.tensor.is_same(tensor) && Find(state, named.name) != nullptr;
  });
}

bool SameValues(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b.to(a.scalar_type()), /*rtol=*/0, /*atol=*/0,
                      /*equal_nan=*/true);
}

// Aliased tensors must have the same value under every name.
absl::Status CheckAliases(const std::vector<NamedTensor>& own,
                          const std::vector<NamedTensor>& state) {
  for (size_t i = 0; i < own.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!own[i].tensor.is_same(own[j].tensor)) continue;
      const NamedTensor* first = Find(state, own[j].name);
      const NamedTensor* second = Find(state, own[i].name);
      if (first == nullptr || second == nullptr ||
          SameValues(first->tensor, second->tensor)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("tensors \"", own[j].name, "\" and \"", own[i].name,
                       "\" differ, but they are one tensor in the model"));
    }
  }
  return absl::OkStatus();
}

// The top 24 bits as a float in [0, 1); exact in every rounding mode.
float UnitFloat(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace

std::string ShapeText(at::IntArrayRef shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

at::Tensor ParameterSet::AddParameter(std::string name, at::Tensor initial) {
  initial = initial.to(device_).requires_grad_(true);
  parameters_.push_back({std::move(name), initial});
  return initial;
}

at::Tensor ParameterSet::AddBuffer(std::string name, at::Tensor initial,
                                   bool in_every_state) {
  initial = initial.to(device_);
  if (!in_every_state) optional_.push_back(name);
  buffers_.push_back({std::move(name), initial});
  return initial;
}

void ParameterSet::AddAlias(std::string name, at::Tensor tensor) {
  aliases_.push_back({std::move(name), std::move(tensor)});
}

void ParameterSet::ReplaceBuffer(size_t place, at::Tensor tensor) {
  buffers_[place].tensor = std::move(tensor);
}

std::vector<NamedTensor> ParameterSet::State() const {
  std::vector<NamedTensor> state = parameters_;
  state.insert(state.end(), buffers_.begin(), buffers_.end());
  state.insert(state.end(), aliases_.begin(), aliases_.end());
  return state;
}

absl::Status ParameterSet::CheckState(
    const std::vector<NamedTensor>& state) const {
  const std::vector<NamedTensor> own = State();
  for (const NamedTensor& named : state) {
    if (Find(own, named.name) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model has no tensor \"", named.name, "\""));
    }
  }
  for (const NamedTensor& mine : own) {
    const NamedTensor* theirs = Find(state, mine.name);
    if (theirs == nullptr) {
      if (std::find(optional_.begin(), optional_.end(), mine.name) !=
              optional_.end() ||
          HasOtherName(own, mine.tensor, state)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("tensor \"", mine.name, "\" is missing"));
    }
    if (theirs->tensor.sizes() != mine.tensor.sizes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor \"", mine.name, "\" is ", ShapeText(theirs->tensor.sizes()),
          ", but the model's is ", ShapeText(mine.tensor.sizes())));
    }
  }
  return CheckAliases(own, state);
}

absl::Status ParameterSet::Load(const std::vector<NamedTensor>& state) {
  return CatchTorch("loading a model", [&]() -> absl::Status {
    MILLRACE_RETURN_IF_ERROR(CheckState(state));
    c10::NoGradGuard no_grad;
    for (const NamedTensor& mine : State()) {
      const NamedTensor* theirs = Find(state, mine.name);
      if (theirs != nullptr) mine.tensor.copy_(theirs->tensor);
    }
    return absl::OkStatus();
  });
}

Initializer::Initializer(uint64_t seed)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

Initializer Initializer::ShapesOnly() {
  Initializer initializer(0);
  initializer.shapes_only_ = true;
  return initializer;
}

at::Tensor Initializer::Uniform(at::IntArrayRef shape, double bound) {
  if (shapes_only_) {
    return at::empty(shape, at::TensorOptions(at::kFloat).device(at::kMeta));
  }
  at::Tensor tensor = at::empty(shape, at::kFloat);
  float* values = tensor.mutable_data_ptr<float>();
  const auto scale = static_cast<float>(bound);
  const int64_t count = tensor.numel();
  for (int64_t i = 0; i < count; ++i) {
    const auto block = static_cast<uint64_t>(i) / 4;
    const PhiloxWords words =
        Philox(key_, {static_cast<uint32_t>(block),
                      static_cast<uint32_t>(block >> 32), drawn_, 0});
    values[i] = (2.0f * UnitFloat(words[i % 4]) - 1.0f) * scale;
  }
  ++drawn_;
  return tensor;
}

at::Tensor Initializer::LinearWeight(int64_t out, int64_t in) {
  return Uniform({out, in}, 1.0 / std::sqrt(static_cast<double>(in)));
}

at::Tensor Initializer::LinearBias(int64_t out, int64_t in) {
  return Uniform({out}, 1.0 / std::sqrt(static_cast<double>(in)));
}

at::Tensor Initializer::Glorot(int64_t out, int64_t in) {
  return Uniform({out, in}, std::sqrt(6.0 / static_cast<double>(in + out)));
}

at::Tensor Initializer::GlorotStack(int64_t count, int64_t in, int64_t out) {
  return Uniform({count, in, out},
                 std::sqrt(6.0 / static_cast<double>(in + out)));
}

}  // namespace millrace
