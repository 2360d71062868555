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
  // Either a folder in OGB's layout: split/NAME/{train,valid,test}.csv with
  // numbers, whose ranges are given by raw/num-node-list.csv and
  // raw/num-relation-list.csv; or a folder with {train,valid,test}.txt (or
  // .tsv, .csv) with names, which are numbered in the order in which they first
  // occur in train, valid and test, with the head of a line before its tail.
  // All files may be gzipped (.gz).
  std::filesystem::path directory;
  // A folder in split/; required if there are several.
  std::string split = {};
  // The columns of a line: h (head), r (relation) and t (tail) in any order.
  std::string columns = "h,r,t";
  // Appends the inverses (t, r + R, h) of the E triples (h, r, t) of train to
  // them, where R is the number of relations.
  bool reciprocal = false;
};

// Opens a graph with node type `node` and relation `node__to__node`, whose
// edges are the triples of train and whose edge types are the triples'
// relations. Its edge splits are `train` (edges 0 to E - 1), `valid` and
// `test`, in the order of the files. Reads all files once, to check and count
// their lines, and holds the names in memory.
// NOT_FOUND: a file is missing. INVALID_ARGUMENT: a line that is not a triple
// or has a number out of range (the message names file and line), an empty
// train, bad columns or no such split (FieldError).
absl::StatusOr<RawGraph> OpenTriples(const TriplesInput& input);

}  // namespace millrace
