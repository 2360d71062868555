// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ingest/edge_split.h"
#include "common/ingest/raw_graph.h"
#include "common/ingest/row_source.h"

namespace millrace {

// All ids of `source`, ascending. INVALID_ARGUMENT: an id that no node of
// `nodes` has, one that stands there twice; both name the place.
absl::StatusOr<std::vector<int64_t>> ReadSplitIds(const RowSource& source,
                                                  const RawNodes& nodes);

// INVALID_ARGUMENT (starting with `option`): not three numbers from 0 to 1
// whose sum is at most 1.
absl::Status CheckFractions(std::string_view option,
                            const std::vector<double>& fractions);

// Divides `labelled` (ascending ids of node type number `type`): share i of
// them, chosen by the keyed permutation of docs/determinism.md, section 4,
// under job seed `seed`, epoch 0, and `type` as hop. The cuts are at
// round(n * (f_0 + .. + f_i)). The results are ascending.
std::vector<std::vector<int64_t>> SplitByFractions(
    const std::vector<int64_t>& labelled, const std::vector<double>& fractions,
    uint64_t seed, int type);

// A split by its name: ascending original ids.
struct NamedSplit {
  std::string name;
  std::vector<int64_t> ids;
};

// INVALID_ARGUMENT (starting with "--folds"): fewer than 3 folds, or more
// than the `labelled` nodes of `type`.
absl::Status CheckFolds(int folds, int64_t labelled, const std::string& type);

// The splits of cross validation (ImportOptions::folds). `labelled` is
// brought into the order of the permutation of SplitByFractions(), then, if
// `classes` (the label of each) is not empty, stably sorted by class; the
// node at place p of this order is in fold p mod `folds`. So the folds have
// equal sizes, and equal shares of each class, to within one node.
std::vector<NamedSplit> SplitByFolds(const std::vector<int64_t>& labelled,
                                     const std::vector<int64_t>& classes,
                                     int folds, uint64_t seed, int type);

// A split's name is a folder: letters, digits, '-', '_' and '.', not
// starting with '.'.
absl::Status CheckSplitName(const std::string& name);

// All values of a table of one or more columns. Errors of RowReader.
absl::StatusOr<std::vector<int64_t>> ReadIntegers(const RowSource& source);

// The columns of a split of pairs; `relation` is left to the caller.
// INVALID_ARGUMENT: columns of another length. Errors of RowReader.
absl::StatusOr<EdgeSplitColumns> ReadEdgeSplit(const RawEdgeSplit& split);

}  // namespace millrace
