// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// What can be said about the labels of a node type without training.
struct LabelSummary {
  // Number of nodes with a label. NaN means no label, and so does a negative
  // number if labels are integers or class numbers.
  int64_t labelled = 0;
  // If each label is a single whole number, a class: the largest label, and the
  // lowest original id among the nodes that have it. -1: no node has a label,
  // or labels are not classes.
  int64_t largest = -1;
  int64_t largest_node = -1;
  // Most of the classes 0 to `largest` have no node, so `largest` may be meant
  // as "no label".
  bool sparse = false;

  // 0 if labels are not classes.
  uint64_t classes() const { return static_cast<uint64_t>(largest) + 1; }
};

// By node type; nullopt for a type without labels.
using LabelSummaries = std::vector<std::optional<LabelSummary>>;

// Reads the labels of the open partitions, at most twice. Needs a quarter of a
// byte of memory per node. CANCELLED: interrupted.
absl::StatusOr<LabelSummaries> SummarizeLabels(const Store& store);

// "labels of 40 nodes in 8 classes", "labels of 40 nodes".
std::string LabelText(const LabelSummary& summary);

// For a sparse summary: a message that says so, and what to do if the largest
// label is a mistake.
std::string SparseClassesText(const LabelSummary& summary,
                              const std::string& type);

}  // namespace millrace
