// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/table/elements.h"

namespace millrace {

// A tensor or NumPy array that is read in place, usually in a mapped file; its
// elements need not be aligned. Immutable; copies share the memory. All
// elements lie within the storage.
struct StoredTensor {
  ElementFormat format = {};
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements, never negative
  const char* data = nullptr;    // the first element
  std::shared_ptr<const void> owner = nullptr;

  int64_t rows() const { return sizes.empty() ? 1 : sizes[0]; }
};

// A view of `storage` (one dimension, dense) with another shape, starting at
// its element `offset`. INVALID_ARGUMENT: the view exceeds the storage, has
// more elements than it (an expanded tensor), or has more than 8 dimensions.
// The message begins with `where`.
absl::StatusOr<StoredTensor> ViewOfStorage(const std::string& where,
                                           const StoredTensor& storage,
                                           int64_t offset,
                                           std::vector<int64_t> sizes,
                                           std::vector<int64_t> strides);

}  // namespace millrace
