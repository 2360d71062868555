// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace millrace {

// Names an array of a stream. The numbers are those of ArrayInfo.Kind in
// proto/sampler.proto. batch_arrays.h describes the arrays of batches.
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
  kRows = 14,  // the only array of a Gather stream
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

// "NODE_ID", ...; "UNKNOWN" for a number without a name.
std::string_view ArrayKindName(ArrayKind kind);

}  // namespace millrace
