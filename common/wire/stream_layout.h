// SPDX-License-Identifier: Apache-2.0
// What a stream of frames carries: `message Stream` as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/dtype.h"
#include "common/sample/array_kind.h"

namespace millrace {

// One array of the byte string.
struct ArrayInfo {
  ArrayKind kind = ArrayKind::kUnknown;
  int index = 0;  // node type or relation, 0 where the kind has neither
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // of its first byte, a multiple of 8

  // Of a layout that CheckLayout accepted.
  size_t total_bytes() const;
  friend bool operator==(const ArrayInfo&, const ArrayInfo&) = default;
};

struct StreamLayout {
  uint64_t total_bytes = 0;
  std::vector<ArrayInfo> arrays;  // ascending offsets
  int hops = 0;
  int seed_type = 0;
  int partition = 0;  // whose rows are sent

  // Appends an array at the next multiple of 8 and returns its offset.
  uint64_t Append(ArrayKind kind, int index, DType dtype,
                  std::vector<int64_t> shape);
  friend bool operator==(const StreamLayout&, const StreamLayout&) = default;
};

// INVALID_ARGUMENT unless offsets ascend in multiples of 8 without overlap,
// sizes do not overflow and all is within `total_bytes`.
// FAILED_PRECONDITION: total_bytes is above `max_bytes`.
absl::Status CheckLayout(const StreamLayout& layout, uint64_t max_bytes);

}  // namespace millrace
