// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "client/nn/parameters.h"

namespace millrace {

enum class DecoderKind { kNone, kDot, kDistMult };

// Scores an edge from the rows of its two ends, by their dot product or by
// DistMult (Yang et al. 2015), which weights each column by the edge's type.
// Both are symmetric in the ends.
// Threads: any, as long as no training is in progress.
class Decoder {
 public:
  // kDistMult adds rel_emb.weight [edge_types, width], as PyG names it.
  Decoder(DecoderKind kind, int64_t edge_types, int64_t width,
          ParameterSet& parameters, Initializer& initializer);

  // Transforms the rows of one end, [n, width], so that their dot products with
  // rows of the other end are the scores. `edge_type`: [n] kLong; undefined if
  // all are 0.
  at::Tensor Query(const at::Tensor& rows, const at::Tensor& edge_type) const;

 private:
  at::Tensor relation_;  // undefined for kDot
};

}  // namespace millrace
