// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/edge_split_writer.h"
#include "common/ingest/raw_graph.h"
#include "common/table/row_source.h"

namespace millrace {

// Reads all ids in `source` and sorts them. INVALID_ARGUMENT: an id that no
// node in `nodes` has, or that occurs twice; the message names the position.
absl::StatusOr<std::vector<int64_t>> ReadSplitIds(const RowSource& source,
                                                  const RawNodes& nodes);

// INVALID_ARGUMENT: `fractions` are not three numbers from 0 to 1 whose sum is
// at most 1; the error names `field`.
absl::Status CheckFractions(std::string_view field,
                            const std::vector<double>& fractions);

// Divides `labelled` (ascending ids of nodes of type `type`) into one share per
// fraction, by the keyed permutation of docs/determinism.md, section 4, with
// job seed `seed`, epoch 0, and `type` as the hop. The cuts are at positions
// round(n * (f_0 + .. + f_i)). The ids in each share are in ascending order.
std::vector<std::vector<int64_t>> SplitByFractions(
    const std::vector<int64_t>& labelled, const std::vector<double>& fractions,
    uint64_t seed, int type);

// A named split: ascending original ids.
struct NamedSplit {
  std::string name;
  std::vector<int64_t> ids;
};

// INVALID_ARGUMENT: fewer than 3 folds, or more than the number of `labelled`
// nodes of `type`; the error names "folds".
absl::Status CheckFolds(int folds, int64_t labelled, const std::string& type);

// The splits for cross validation (see ImportOptions::folds). `labelled`, which
// must not be empty, is put in the order of the permutation of
// SplitByFractions() and then, if `classes` (the label of each node) is not
// empty, stably sorted by class. The node at position p is in fold p mod
// `folds`, so folds have equal sizes, and equal numbers of each class, to
// within one node.
std::vector<NamedSplit> SplitByFolds(const std::vector<int64_t>& labelled,
                                     const std::vector<int64_t>& classes,
                                     int folds, uint64_t seed, int type);

// INVALID_ARGUMENT: `name`, which becomes the name of a folder, is empty,
// starts with '.', or has characters other than letters, digits, '-', '_' and
// '.'.
absl::Status CheckSplitName(const std::string& name);

// Reads all values of a table, row by row. Fails as RowReader does.
absl::StatusOr<std::vector<int64_t>> ReadIntegers(const RowSource& source);

// Reads the columns of a split of pairs; the caller sets `relation`.
// INVALID_ARGUMENT: columns of different lengths. Also the errors of RowReader.
absl::StatusOr<EdgeSplitColumns> ReadEdgeSplit(const RawEdgeSplit& split);

}  // namespace millrace
