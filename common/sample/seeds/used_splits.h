// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/graph/manifest.h"
#include "common/sample/job.h"

namespace millrace {

// A split that the batches of a job depend on, as requests name it.
struct UsedSplit {
  std::string type;  // a node type, or the relation of a split of edges
  std::string name;
  std::string fingerprint;  // see SplitIdentity

  friend bool operator==(const UsedSplit&, const UsedSplit&) = default;
};

// The splits that the batches of a job depend on: that of its seeds, unless
// they are explicit, and those of its train graph. Splits whose fingerprint is
// not known are left out.
std::vector<UsedSplit> SplitsOfJob(const ResolvedJob& job,
                                   const Manifest& manifest,
                                   bool explicit_seeds);
// The splits of a train graph; none if `name` is empty.
std::vector<UsedSplit> SplitsOfTrainGraph(std::string_view name,
                                          const Manifest& manifest);

}  // namespace millrace
