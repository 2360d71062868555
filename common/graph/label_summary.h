// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"

namespace millrace {

// What the labels of a node type say before anybody trains on them.
struct LabelSummary {
  // Nodes with a label. NaN is none; a negative number is none where labels
  // are integers or class numbers.
  int64_t labelled = 0;
  // Where each label is one whole number, a class: the largest (-1: no node
  // has one, or labels are not classes), and the first node, by original id,
  // that has it.
  int64_t largest = -1;
  int64_t largest_node = -1;
  // Most of the classes 0 to `largest` have no node: `largest` may stand for
  // "no label".
  bool sparse = false;

  // 0: labels are not classes.
  uint64_t classes() const { return static_cast<uint64_t>(largest) + 1; }
};

// By node type; nothing where a type has no labels.
using LabelSummaries = std::vector<std::optional<LabelSummary>>;

// Reads the labels in the partitions that are open, twice at most. Memory: a
// quarter of a byte for each node. CANCELLED: interrupted.
absl::StatusOr<LabelSummaries> SummarizeLabels(const Store& store);

// "labels of 40 nodes in 8 classes", "labels of 40 nodes".
std::string LabelText(const LabelSummary& summary);

// For a sparse summary: says so, and what to do where it is a mistake.
std::string SparseClassesText(const LabelSummary& summary,
                              const std::string& type);

}  // namespace millrace
