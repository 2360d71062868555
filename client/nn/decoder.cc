// SPDX-License-Identifier: Apache-2.0
#include "client/nn/decoder.h"

namespace millrace {

Decoder::Decoder(DecoderKind kind, int64_t edge_types, int64_t width,
                 ParameterSet& parameters, Initializer& initializer) {
  if (kind != DecoderKind::kDistMult) return;
  relation_ = parameters.AddParameter("rel_emb.weight",
                                      initializer.Glorot(edge_types, width));
}

at::Tensor Decoder::Query(const at::Tensor& rows,
                          const at::Tensor& edge_type) const {
  if (!relation_.defined()) return rows;
  return rows.mul(edge_type.defined() ? relation_.index_select(0, edge_type)
                                      : relation_.narrow(0, 0, 1));
}

}  // namespace millrace
