// SPDX-License-Identifier: Apache-2.0
// SHA-256 digests of batches; docs/determinism.md section 7.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "common/graph/schema.h"
#include "common/sample/batch.h"

namespace millrace {

using Sha256 = std::array<uint8_t, 32>;

// `batch` must carry original ids, edge ids, uncast features and seed labels
// (where the graph has them): see DigestColumns.
Sha256 DigestBatch(const Batch& batch, const Schema& schema);

// Returns the columns that a batch needs for DigestBatch().
Columns DigestColumns(bool features, bool edge_features);

std::string Hex(const Sha256& hash);

// The `total` line: digests added in batch order.
class DigestTotal {
 public:
  DigestTotal();
  ~DigestTotal();
  void Add(const Sha256& digest);
  Sha256 Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
