// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/elements.h"

namespace millrace {

// A tensor, or an array of NumPy, where it lies in a mapped file; elements may
// be at any address. Immutable; copies share the map. Its views end in its
// storage.
struct StoredTensor {
  ElementFormat format = {};
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements, not negative
  const char* data = nullptr;    // the first element
  std::shared_ptr<const void> owner = nullptr;

  int64_t rows() const { return sizes.empty() ? 1 : sizes[0]; }
};

// `storage` (one dimension, dense) seen as another shape, from its element
// `offset` on. INVALID_ARGUMENT: the view leaves the storage, has more
// elements than it (an expanded tensor), or more than 8 dimensions; `where`
// begins the message.
absl::StatusOr<StoredTensor> ViewOfStorage(const std::string& where,
                                           const StoredTensor& storage,
                                           int64_t offset,
                                           std::vector<int64_t> sizes,
                                           std::vector<int64_t> strides);

}  // namespace millrace
