// SPDX-License-Identifier: Apache-2.0
// The named tensors of a model, and how they start.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/base/philox.h"

namespace millrace {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// "[2, 3]".
std::string ShapeText(const at::Tensor& tensor);

// Parameters (learned, float32) and buffers (running statistics, and weights
// that are not learned) by the model's names, in the order they were added.
// A tensor may have several names. Single-threaded.
class ParameterSet {
 public:
  // Takes `initial` as a leaf that wants a gradient; the layer keeps the
  // returned tensor, which shares its memory.
  at::Tensor AddParameter(std::string name, at::Tensor initial);
  // `in_every_state`: whether Load insists on a value.
  at::Tensor AddBuffer(std::string name, at::Tensor initial,
                       bool in_every_state = true);
  // Another name of a parameter or buffer that was added.
  void AddAlias(std::string name, at::Tensor tensor);
  // Buffer `place`, counted from 0, is another tensor from now on.
  void ReplaceBuffer(size_t place, at::Tensor tensor);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  // Both by all of their names.
  std::vector<NamedTensor> State() const;

  // Copies values in, by name; one of a tensor's names is enough.
  // INVALID_ARGUMENT: names or shapes differ from State(), or names of one
  // tensor have different values; says which.
  absl::Status Load(const std::vector<NamedTensor>& state);

 private:
  absl::Status CheckState(const std::vector<NamedTensor>& state) const;

  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<NamedTensor> aliases_;
  std::vector<std::string> optional_;  // buffers not in every state
};

// Initial values, equal on every machine: element i of the n-th tensor drawn
// is a function of (seed, n, i).
class Initializer {
 public:
  explicit Initializer(uint64_t seed);
  // Makes tensors that have a shape but no memory.
  static Initializer ShapesAlone();

  // Uniform in [-bound, bound).
  at::Tensor Uniform(at::IntArrayRef shape, double bound);
  // torch.nn.Linear's weight [out, in] and bias [out]: bound 1 / sqrt(in).
  at::Tensor LinearWeight(int64_t out, int64_t in);
  at::Tensor LinearBias(int64_t out, int64_t in);
  // Glorot and Bengio 2010, as PyG's `glorot`.
  at::Tensor Glorot(int64_t out, int64_t in);
  // [count, in, out], each matrix with its own bound of Glorot.
  at::Tensor GlorotStack(int64_t count, int64_t in, int64_t out);

 private:
  const PhiloxKey key_;
  bool shapes_alone_ = false;
  uint32_t drawn_ = 0;  // tensors so far
};

}  // namespace millrace
