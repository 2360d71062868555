// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/graph/manifest.h"
#include "common/sample/job.h"

namespace millrace {

// A split that batches are made with, as requests name it.
struct UsedSplit {
  std::string type;  // a node type, or the relation of a split of edges
  std::string name;
  std::string fingerprint;  // see SplitIdentity

  friend bool operator==(const UsedSplit&, const UsedSplit&) = default;
};

// The splits whose content decides what the batches of a job hold: that of its
// seeds, unless they are explicit, and those of its train graph. Leaves out
// those whose fingerprint is not known.
std::vector<UsedSplit> SplitsOfJob(const ResolvedJob& job,
                                   const Manifest& manifest,
                                   bool explicit_seeds);
// Those of a train graph alone; empty: none.
std::vector<UsedSplit> SplitsOfTrainGraph(std::string_view name,
                                          const Manifest& manifest);

}  // namespace millrace
