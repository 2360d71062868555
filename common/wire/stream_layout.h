// SPDX-License-Identifier: Apache-2.0
// `message Stream` as a value: what a stream of frames carries.
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
  int index = 0;  // node type or relation; 0 if the kind has neither
  DType dtype = DType::kNone;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // of its first byte in the byte string; a multiple of 8

  // Does not overflow if CheckLayout() has accepted the layout.
  size_t total_bytes() const;
  friend bool operator==(const ArrayInfo&, const ArrayInfo&) = default;
};

struct StreamLayout {
  uint64_t total_bytes = 0;
  std::vector<ArrayInfo> arrays;  // ascending offsets
  int hops = 0;
  int seed_type = 0;
  int partition = 0;  // the one whose rows are sent

  // Appends an array at the next multiple of 8 and returns its offset.
  uint64_t Append(ArrayKind kind, int index, DType dtype,
                  std::vector<int64_t> shape);
  friend bool operator==(const StreamLayout&, const StreamLayout&) = default;
};

// INVALID_ARGUMENT: arrays overlap, are out of order or exceed `total_bytes`,
// an offset is not a multiple of 8, a dtype is kNone, or a size overflows.
// OUT_OF_RANGE: total_bytes is above `max_bytes`.
absl::Status CheckLayout(const StreamLayout& layout, uint64_t max_bytes);

}  // namespace millrace
