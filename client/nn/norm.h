// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "client/nn/parameters.h"

namespace millrace {

enum class NormKind { kNone, kBatch, kLayer };

// Normalises the rows of a hidden layer. Threads: at most one may train.
class Norm {
 public:
  virtual ~Norm() = default;

  virtual at::Tensor Forward(const at::Tensor& rows, bool training) = 0;

  // Null for kNone. kBatch: torch.nn.BatchNorm1d with PyG's names
  // (PREFIX.module.weight, ...); a batch of one row, which has no variance, is
  // normalised with the running statistics and does not update them. kLayer:
  // normalises each row (PyG's mode='node'); PREFIX.weight, PREFIX.bias.
  static std::unique_ptr<Norm> Create(NormKind kind, const std::string& prefix,
                                      int64_t width, ParameterSet& parameters);
};

}  // namespace millrace
