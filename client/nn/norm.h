// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "client/nn/parameters.h"

namespace millrace {

enum class NormKind { kNone, kBatch, kLayer };

// Normalises the rows of a hidden layer. One training thread at a time.
class Norm {
 public:
  virtual ~Norm() = default;

  virtual at::Tensor Forward(const at::Tensor& rows, bool training) = 0;

  // Null for kNone. kBatch: torch.nn.BatchNorm1d under PyG's names
  // (PREFIX.module.weight, ...); a batch of one row is normalised with the
  // running statistics and leaves them alone, since it has no variance.
  // kLayer: over each row (PyG's mode='node'), PREFIX.weight, PREFIX.bias.
  static std::unique_ptr<Norm> Create(NormKind kind, const std::string& prefix,
                                      int64_t width, ParameterSet& parameters);
};

}  // namespace millrace
