// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// A knowledge graph: triples (head, relation, tail), divided into train,
// valid and test.
struct TriplesInput {
  // Either a folder in OGB's manner: split/NAME/{train,valid,test}.csv of
  // numbers, whose ranges raw/num-node-list.csv and raw/num-relation-list.csv
  // give; or a folder with {train,valid,test}.txt (or .tsv, .csv) of names,
  // which are numbered in the order in which they come first in train, valid
  // and test, the head of a line before its tail. All also as .gz.
  std::filesystem::path directory;
  // A folder under split/; needed where there are several.
  std::string split = {};
  // What stands in a line: h, r and t, in any order.
  std::string columns = "h,r,t";
  // After the E triples (h, r, t) of train come (t, r + R, h), R being the
  // number of relations.
  bool reciprocal = false;
};

// Node type `node`, relation `node__to__node`, whose edges are the triples of
// train and whose edge types are the relations; the splits of edges `train`
// (edges 0 to E - 1), `valid` and `test`, in the order of the files. Reads all
// files once, to check and to count them; holds the names.
// NOT_FOUND: a file is missing. INVALID_ARGUMENT: a line that is no triple or
// out of range (names file and line), an empty train; starting with "--": bad
// columns or no such split.
absl::StatusOr<RawGraph> DescribeTriples(const TriplesInput& input);

}  // namespace millrace
