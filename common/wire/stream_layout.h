// SPDX-License-Identifier: Apache-2.0
// What a stream of frames carries: `message Stream` as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/base/dtype.h"

namespace millrace {

// The numbers of ArrayInfo.Kind.
enum class ArrayKind : uint8_t {
  kUnknown = 0,
  kSeed = 1,
  kSeedToLocal = 2,
  kHopOffsets = 3,
  kNodeId = 4,
  kTree = 5,
  kIndptr = 6,
  kNeighbor = 7,
  kEdgeId = 8,
  kNodeFeature = 9,
  kNodeLabel = 10,
  kOriginalId = 11,
  kDegree = 12,
  kEdgeFeature = 13,
  kRows = 14,
  kSeedTime = 15,
  kWalks = 16,
  kEdgeHop = 17,
  kVisits = 18,
  kFeatureRow = 19,
  kSeedDst = 20,
  kSeedLabel = 21,
  kSeedEdgeType = 22,
  kNegativeSrc = 23,
  kNegativeDst = 24,
  kDstLocal = 25,
  kNegativeSrcLocal = 26,
  kNegativeLocal = 27,
  kFalseNegatives = 28,
};
// "NODE_ID", ...
std::string_view ArrayKindName(ArrayKind kind);

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
