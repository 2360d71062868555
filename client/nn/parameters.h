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

// Parameters (learned, float32) and buffers (running statistics) by PyG's
// names, in the order they were added. Single-threaded.
class ParameterSet {
 public:
  // Takes `initial` as a leaf that wants a gradient; the layer keeps the
  // returned tensor, which shares its memory.
  at::Tensor AddParameter(std::string name, at::Tensor initial);
  at::Tensor AddBuffer(std::string name, at::Tensor initial);
  // Buffer `place`, counted from 0, is another tensor from now on.
  void ReplaceBuffer(size_t place, at::Tensor tensor);

  const std::vector<NamedTensor>& parameters() const { return parameters_; }
  const std::vector<NamedTensor>& buffers() const { return buffers_; }
  // Both, in the order they were added.
  std::vector<NamedTensor> State() const;

  // Copies values in, by name. INVALID_ARGUMENT: names or shapes differ from
  // State(); says which.
  absl::Status Load(const std::vector<NamedTensor>& state);

 private:
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
};

// Initial values, equal on every machine: element i of the n-th tensor drawn
// is a function of (seed, n, i).
class Initializer {
 public:
  explicit Initializer(uint64_t seed);

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
  uint32_t drawn_ = 0;  // tensors so far
};

}  // namespace millrace
