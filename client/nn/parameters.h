// SPDX-License-Identifier: Apache-2.0
// The named tensors of a model and their initial values.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/random/philox.h"

namespace millrace {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// A shape in the form "[2, 3]".
std::string ShapeText(at::IntArrayRef shape);

// Parameters (learned, float32) and buffers (running statistics, and weights
// that are not learned), under the model's names, in the order in which they
// were added, all on one device. A tensor may have several names. Not
// thread-safe.
class ParameterSet {
 public:
  explicit ParameterSet(at::Device device = at::kCPU) : device_(device) {}
  at::Device device() const { return device_; }

  // Makes `initial`, or a copy of it on the set's device, a leaf that requires
  // a gradient. Returns the tensor, which the layer keeps.
  at::Tensor AddParameter(std::string name, at::Tensor initial);
  // `in_every_state`: whether Load requires a value.
  at::Tensor AddBuffer(std::string name, at::Tensor initial,
                       bool in_every_state = true);
  // Adds another name for a parameter or buffer added before.
  void AddAlias(std::string name, at::Tensor tensor);
  // Replaces the tensor of buffer `place`, counted from 0.
  void ReplaceBuffer(size_t place, at::Tensor tensor);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  // Parameters and buffers, under all of their names.
  std::vector<NamedTensor> State() const;

  // Copies the values in by name; one of a tensor's names is enough.
  // INVALID_ARGUMENT: names or shapes differ from State(), or the names of one
  // tensor have different values; says which.
  absl::Status Load(const std::vector<NamedTensor>& state);

 private:
  absl::Status CheckState(const std::vector<NamedTensor>& state) const;

  const at::Device device_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<NamedTensor> aliases_;
  std::vector<std::string> optional_;  // buffers not in every state
};

// Initial values, equal on every machine: element i of the n-th tensor is a
// function of (seed, n, i).
class Initializer {
 public:
  explicit Initializer(uint64_t seed);
  // An initializer whose tensors have a shape but no memory, for a ParameterSet
  // on kMeta.
  static Initializer ShapesOnly();

  // Uniform in [-bound, bound).
  at::Tensor Uniform(at::IntArrayRef shape, double bound);
  // Weight [out, in] and bias [out] as in torch.nn.Linear: bound 1 / sqrt(in).
  at::Tensor LinearWeight(int64_t out, int64_t in);
  at::Tensor LinearBias(int64_t out, int64_t in);
  // Glorot and Bengio 2010, like PyG's `glorot`.
  at::Tensor Glorot(int64_t out, int64_t in);
  // [count, in, out]; each matrix has its own Glorot bound.
  at::Tensor GlorotStack(int64_t count, int64_t in, int64_t out);

 private:
  const PhiloxKey key_;
  bool shapes_only_ = false;
  uint32_t drawn_ = 0;  // tensors so far
};

}  // namespace millrace
