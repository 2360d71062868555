// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"
#include "server/core/served_store.h"

namespace millrace {

namespace v1 {
class SampleRequest;
}  // namespace v1

// A request for a batch, checked and ready to be sampled.
struct SampleRequest {
  uint32_t epoch = 0;
  uint32_t batch = 0;
  ResolvedJob job;
  Columns columns;
  ResolvedSeeds seeds;  // explicit seeds, or the batch's share of the split
  bool explicit_seeds = false;
  bool explicit_negatives = false;
  std::vector<uint64_t> cached_rows;  // [node type], or empty
  uint64_t job_hash = 0;              // equal for similar calls
};

// Checks a request against the store and resolves its job and seeds. Blocks
// like ServedStore::LookForSplits().
// INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION: as docs/protocol.md says.
// DATA_LOSS: the list of seeds is damaged.
absl::StatusOr<SampleRequest> CheckSampleRequest(
    ServedStore& store, const v1::SampleRequest& proto);

}  // namespace millrace
