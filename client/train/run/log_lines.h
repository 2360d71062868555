// SPDX-License-Identifier: Apache-2.0
// The lines of a run's logs, and the files that they are written to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/train/eval/evaluator.h"
#include "common/file/file.h"

namespace millrace {

// One line of --metrics-json; absent values are null.
struct MetricsRecord {
  uint32_t epoch = 0;          // from 0
  uint32_t step = 0;           // steps done in the epoch
  std::optional<double> loss;  // mean over labelled values of all ranks
  SplitMetrics metrics;        // by the run's --metric
  // Of training. Waiting for batches, copying or making minibatches and
  // computing are parts of it, which overlap on a device; see EpochClock.
  double seconds = 0;
  double wait_seconds = 0;
  double copy_seconds = 0;
  double compute_seconds = 0;
  double eval_seconds = 0;
  double cpu_seconds = 0;              // of training in all processes
  std::optional<uint32_t> best_epoch;  // only in the last line
};

// A file, pipe or device to which several processes of a run may append lines;
// each line is written with a single write.
// States: opened -> begun by one of the processes -> written by all.
// Threads: one at a time, except for Sync(). Fails like FileError, naming the
// file.
class LineFile {
 public:
  static absl::StatusOr<LineFile> Open(const std::string& path, bool append);
  // A number that identifies the file among those of all hosts.
  uint64_t identity() const { return identity_; }
  // Locks the file for this run, until the object is destroyed. Then empties it
  // or, if it was opened to append, removes only a last line that is not whole.
  // FAILED_PRECONDITION: another run has the lock.
  absl::Status Begin();
  absl::Status Write(const std::string& line);
  // Syncs to disk all lines that processes of this host have written. Any
  // thread.
  absl::Status Sync() const;

 private:
  std::string path_;
  bool append_ = false;
  bool regular_ = false;  // a file, not a pipe or a device
  uint64_t identity_ = 0;
  UniqueFd fd_;
};

// Returns a JSON object.
std::string MetricsLine(const MetricsRecord& record);
// Returns a line for people, of about 100 characters:
// "epoch 3  loss 0.532100  train 0.9810  valid 0.7910  test 0.8040  1.92 s
// (waiting 0.05, evaluating 0.61)".
std::string EpochLine(const MetricsRecord& record);

// The first line of an attempt in each of its files. It has no batch, because
// even an attempt without batches makes lines of earlier attempts void.
struct AttemptRecord {
  int64_t attempt = 0;     // number of this start of the run, from 0
  std::string checkpoint;  // "EPOCH:BATCH" that the attempt started from
};
std::string AttemptLine(const AttemptRecord& record);

// The line of a batch that was trained on.
struct ConsumedRecord {
  int64_t attempt = 0;     // see AttemptRecord
  std::string checkpoint;  // see AttemptRecord
  uint32_t epoch = 0;
  uint32_t batch = 0;
  int rank = 0;
  std::vector<int64_t> seeds;  // original ids; for edges, of the sources
  std::vector<int64_t> dst;    // for edges, of the destinations; else empty
  std::string digest;
};
std::string ConsumedLine(const ConsumedRecord& record);
// Returns the attempt of the last line in a file of AttemptLine and
// ConsumedLine; -1 if there is no such line or file. Fails like FileError.
absl::StatusOr<int64_t> LastAttempt(const std::string& path);

}  // namespace millrace
