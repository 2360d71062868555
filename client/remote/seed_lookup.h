// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/remote/attempt_calls.h"
#include "client/remote/call_context.h"
#include "common/graph/schema.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/job.h"

namespace millrace {

namespace v1 {
class SampleRequest;
}  // namespace v1

// Looks up what a server needs to know of seeds that the user listed by their
// original ids: first their ids, then, for temporal jobs, their times. Each
// step may be repeated if it failed.
// Not thread-safe. The calls of a step must end before the next one.
class SeedLookup {
 public:
  // `job` and `list`, which is given its seeds' times, must outlive the lookup.
  SeedLookup(const CallContext& context, const ResolvedJob& job,
             ExplicitSeeds& list)
      : context_(context), job_(job), list_(list) {}

  // Starts the calls for the ids. INVALID_ARGUMENT: too many seeds, or one is
  // out of range. Also the errors of CheckExplicitSeeds().
  absl::Status StartIds(AttemptCalls& calls);

  // Whether the job needs the times of the seeds, and the list lacks them.
  bool needs_times() const;
  // Starts the calls for the times to the owners of the seeds.
  absl::Status StartTimes(AttemptCalls& calls);

  // Adds what was found to a request.
  void AppendTo(v1::SampleRequest& message) const;

 private:
  absl::Status StartIdsOf(TypeIndex type, const std::vector<int64_t>& originals,
                          std::vector<uint64_t>& ids, AttemptCalls& calls);

  const CallContext context_;
  const ResolvedJob& job_;
  ExplicitSeeds& list_;
  std::vector<uint64_t> ids_;  // of edge seeds: the sources
  std::vector<uint64_t> dst_ids_;
  std::vector<uint64_t> negative_ids_;
};

}  // namespace millrace
