// SPDX-License-Identifier: Apache-2.0
// Random draws, as docs/determinism.md sections 2 to 4 specify them.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "common/base/philox.h"
#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

enum class Purpose : uint32_t {
  kShuffle = 0,
  kNeighbor = 1,
  kWalk = 2,
  kNegative = 3,
  kInterleave = 4,
  kLabor = 5,
  kStop = 6,
};

// The key of one domain of random numbers; section 2, "Key".
struct DrawDomain {
  uint64_t job_seed = 1;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  Purpose purpose = Purpose::kNeighbor;
  int hop = 0;
  int relation = 0;

  PhiloxKey Key(uint32_t retry = 0) const;
};

// The permutation P(K, n) of section 4. Immutable; any thread.
class Permutation {
 public:
  Permutation(PhiloxKey key, uint64_t size);  // size >= 1
  uint64_t operator()(uint64_t position) const;

 private:
  PhiloxKey key_;
  uint64_t size_;
  int half_bits_;
};

// Draws from the lists of one partition; section 3. All ids of `frontier`
// must be owned by `part` of `store` (mapped). Appends to `picks`.
// DATA_LOSS: a list that leaves its file, or an id beyond its type's range.
// FAILED_PRECONDITION: the lists lack what the rule reads. Also those of
// frontier.watch; then `picks` is as good as lost.
absl::Status DrawNeighbors(const Store& store, int part,
                           const DrawContext& context, const Frontier& frontier,
                           Picks& picks);

}  // namespace millrace
