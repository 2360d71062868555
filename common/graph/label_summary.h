// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// Statistics of the labels of a node type.
struct LabelSummary {
  // Number of nodes with a label. NaN means no label, and so does a negative
  // number if labels are integers or class numbers.
  int64_t labelled = 0;
  // If labels are classes (single whole numbers): the largest label, and the
  // lowest original id of the nodes that have it. Otherwise, or if no node has
  // a label, -1.
  int64_t largest = -1;
  int64_t largest_node = -1;
  // Whether most of the classes 0 to `largest` have no node, so that `largest`
  // may be meant as "no label".
  bool sparse = false;

  // 0 if labels are not classes.
  uint64_t classes() const { return static_cast<uint64_t>(largest) + 1; }
};

// Indexed by node type; nullopt for a type without labels.
using LabelSummaries = std::vector<std::optional<LabelSummary>>;

// Reads the labels of the open partitions, at most twice. Needs a quarter of a
// byte of memory per node. CANCELLED: interrupted.
absl::StatusOr<LabelSummaries> SummarizeLabels(const Store& store);

// "labels of 40 nodes in 8 classes", "labels of 40 nodes".
std::string LabelText(const LabelSummary& summary);

// A warning for a sparse summary, with advice in case the largest label is a
// mistake.
std::string SparseClassesText(const LabelSummary& summary,
                              const std::string& type);

}  // namespace millrace
