// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/array.h"

namespace millrace {

// Allocates zeroed memory, aligned to pages, and to huge pages where the system
// has them, so that reading it at random misses the TLB less often. For what
// lives long; at least one page.
// RESOURCE_EXHAUSTED: the system refuses.
absl::StatusOr<std::shared_ptr<std::byte>> AllocateHugeBlock(size_t bytes);

// How much memory AllocateHugeBlock() takes for as many bytes.
size_t HugeBlockBytes(size_t bytes);

// An array in such memory.
absl::StatusOr<Array> AllocateHugeArray(DType dtype,
                                        std::vector<int64_t> shape);

}  // namespace millrace
