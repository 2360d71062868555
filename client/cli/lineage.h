// SPDX-License-Identifier: Apache-2.0
// Reads the logs that `millrace-train --consumed-log` wrote in a run, which may
// have been ended and resumed several times.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// The position of a batch in a run.
struct BatchPlace {
  int64_t epoch = 0;
  int64_t batch = 0;
  friend auto operator<=>(const BatchPlace&, const BatchPlace&) = default;
};

// What the logs say. A line is void if a later attempt started at its batch or
// before it, because that attempt continued without the effect of the line.
// Attempts are ordered by their numbers. Each begins with a line without a
// batch, which is not counted. Older logs have no such lines, so they show an
// attempt only by its batches.
class Lineage {
 public:
  struct Attempt {
    BatchPlace start;   // position of its checkpoint
    int64_t lines = 0;  // lines with batches
    int64_t void_lines = 0;
  };
  struct Epoch {
    int64_t batches = 0;
    int64_t seeds = 0;
  };

  // Reads the files of all hosts of one run. `valid`, if given, is called with
  // each line of a batch that is not void, in the order of the files. Skips
  // torn lines.
  // FAILED_PRECONDITION: lines of two runs (says which). INVALID_ARGUMENT: a
  // pipe or a folder. Also errors of reading files.
  static absl::StatusOr<Lineage> Read(
      const std::vector<std::string>& paths,
      const std::function<void(const std::string& line)>& valid = {});

  const std::map<int64_t, Attempt>& attempts() const { return attempts_; }
  // Sums over the lines that are not void.
  const std::map<int64_t, Epoch>& epochs() const { return epochs_; }
  int64_t torn_lines() const { return torn_; }
  // Returns reasons why the lines that are not void do not contain each seed
  // once per epoch: there are no such lines; a batch or seed occurs twice; a
  // batch or epoch (from 0) is missing; an epoch other than the last has fewer
  // batches than another; an epoch does not have `seeds` seeds, if `seeds` > 0;
  // or there are torn lines other than at the end of an attempt. At most 20, in
  // the order of the epochs. Edge seeds may repeat, so only their batches and
  // their number are compared.
  std::vector<std::string> Faults(int64_t seeds = 0) const;

 private:
  struct Batch;
  struct Line;
  struct Content {
    std::map<int64_t, int64_t> attempt_of;  // batch -> attempt
    std::vector<int64_t> node_seeds;        // sorted
  };

  static bool Parse(const std::string& text, Line& line);
  // The first of two passes over a file; the second adds up the lines that are
  // not void.
  absl::Status ReadAttempts(const std::string& path);
  std::vector<std::string> EpochFaults(int64_t number, int64_t most,
                                       int64_t seeds) const;
  absl::Status AddAttempt(const Line& line);
  // `line` must have a batch.
  bool IsVoid(const Line& line) const;
  void Add(int64_t attempt, const Batch& batch);

  std::map<int64_t, Attempt> attempts_;
  std::map<int64_t, Epoch> epochs_;
  std::map<int64_t, Content> content_;   // by epoch
  std::vector<std::string> duplicates_;  // of batches
  std::vector<std::string> damaged_;     // files
  int64_t torn_ = 0;
};

}  // namespace millrace
