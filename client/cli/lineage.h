// SPDX-License-Identifier: Apache-2.0
// What the logs of `millrace-train --consumed-log` say of a run that was ended
// and resumed, however often.
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

// Where a batch stands in a run.
struct BatchPlace {
  int64_t epoch = 0;
  int64_t batch = 0;
  friend auto operator<=>(const BatchPlace&, const BatchPlace&) = default;
};

// A line is void when a later attempt started at its batch or before: that
// attempt went on without what the line stands for. Attempts are in the order
// of their numbers. Each begins with a line of no batch, which no count
// includes; in older logs it is only known by its batches.
class Lineage {
 public:
  struct Attempt {
    BatchPlace start;   // of its checkpoint
    int64_t lines = 0;  // of batches
    int64_t void_lines = 0;
  };
  struct Epoch {
    int64_t batches = 0;
    int64_t seeds = 0;
  };

  // Reads the files of all hosts of one run. `valid`, if given, gets each line
  // of a batch that is not void, in the order of the files. Lines that are torn
  // are left out. FAILED_PRECONDITION: lines of two runs; says which.
  // INVALID_ARGUMENT: a pipe, a folder. Errors of files.
  static absl::StatusOr<Lineage> Read(
      const std::vector<std::string>& paths,
      const std::function<void(const std::string& line)>& valid = {});

  const std::map<int64_t, Attempt>& attempts() const { return attempts_; }
  // Of the lines that are not void.
  const std::map<int64_t, Epoch>& epochs() const { return epochs_; }
  int64_t torn_lines() const { return torn_; }
  // Why the lines that are not void do not hold each seed once an epoch: none
  // of them is there, a batch or a seed twice, a batch or an epoch missing
  // (from epoch 0), an epoch with fewer batches than another (but for the
  // last), or, for `seeds` above 0, with another number of seeds; or torn lines
  // elsewhere than where an attempt ended. At most 20, in the order of the
  // epochs. Edges may be there twice, so of edge seeds the batches alone are
  // told apart.
  std::vector<std::string> Faults(int64_t seeds = 0) const;

 private:
  struct Batch;
  struct Line;
  struct Content {
    std::map<int64_t, int64_t> attempt_of;  // batch -> attempt
    std::vector<int64_t> node_seeds;        // sorted
  };

  static bool Parse(const std::string& text, Line& line);
  // The first of two passes; the second one adds up what is not void.
  absl::Status ReadAttempts(const std::string& path);
  std::vector<std::string> EpochFaults(int64_t number, int64_t most,
                                       int64_t seeds) const;
  absl::Status AddAttempt(const Line& line);
  // Of a batch.
  bool IsVoid(const Line& line) const;
  void Add(int64_t attempt, const Batch& batch);

  std::map<int64_t, Attempt> attempts_;
  std::map<int64_t, Epoch> epochs_;
  std::map<int64_t, Content> content_;  // by epoch
  std::vector<std::string> twice_;      // batches
  std::vector<std::string> damaged_;    // files
  int64_t torn_ = 0;
};

}  // namespace millrace
