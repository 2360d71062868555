// SPDX-License-Identifier: Apache-2.0
// Feature rows as kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cuda {

// The rows of one partition. Row r of the first `held` ones is row r / n of the
// partition's rows in share r % n, of n shares.
struct PartRows {
  uint64_t first_id = 0;  // of the nodes whose rows they are; 0 for edges
  uint64_t count = 0;     // 0 if the partition is not mapped
  uint64_t held = 0;
  uint64_t at = 0;  // byte at which the partition's rows begin in each share
  // All rows, in pinned memory; null if none is read there.
  const std::byte* pinned = nullptr;
};

// The features of the nodes of one type, or of the edges of one relation. What
// it points to is in the memory of the device whose kernels read it.
struct FeatureColumn {
  const PartRows* parts = nullptr;  // by partition
  uint32_t part_count = 0;
  uint32_t share_count = 0;
  // Memory of each device that has a share; null if this one cannot read it, so
  // that the rows are read in pinned memory.
  const std::byte* const* shares = nullptr;
  uint64_t row_bytes = 0;
  // The alignment of all rows in bytes: 1, 2, 4, 8 or 16.
  uint64_t alignment = 1;
};

}  // namespace millrace::cuda
