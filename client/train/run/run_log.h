// SPDX-License-Identifier: Apache-2.0
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

// What one line of --metrics-json says; absent values are null.
struct MetricsRecord {
  uint32_t epoch = 0;          // from 0
  uint32_t step = 0;           // steps done in the epoch
  std::optional<double> loss;  // seed-weighted mean over all ranks
  Accuracy accuracy;           // by the run's --metric
  double seconds = 0;          // of training: wait, copy and compute
  double wait_seconds = 0;
  double copy_seconds = 0;
  double compute_seconds = 0;
  double eval_seconds = 0;
  double cpu_seconds = 0;              // of training, all trainer processes
  std::optional<uint32_t> best_epoch;  // the last line alone
};

// A file of lines, each written at once, so that several processes of a run may
// append to one file; a pipe or a device, too.
// States: opened, then begun by one of the processes, then written by all.
// Threads: one at a time, but for Sync(). Errors of FileError, naming the file.
class LineFile {
 public:
  static absl::StatusOr<LineFile> Open(const std::string& path, bool append);
  // The same number for the same file of this host, and for no other file of
  // this or another host.
  uint64_t identity() const { return identity_; }
  // Locks the file for this run until the object goes; then empties it, or,
  // `append`, keeps its lines but not one that a process died within.
  // FAILED_PRECONDITION: another run has the lock.
  absl::Status Begin();
  absl::Status Write(const std::string& line);
  // On return all lines that were written before, by whichever process of this
  // host, are on the disk. Any thread.
  absl::Status Sync() const;

 private:
  std::string path_;
  bool append_ = false;
  bool regular_ = false;  // a file, not a pipe or a device
  uint64_t identity_ = 0;
  UniqueFd fd_;
};

// One JSON object.
std::string MetricsLine(const MetricsRecord& record);
// One line for people of about 100 characters; --metrics-json has the other
// times, too:
// "epoch 3  loss 0.532100  train 0.9810  valid 0.7910  test 0.8040  1.92 s
// (waiting 0.05, evaluating 0.61)".
std::string EpochLine(const MetricsRecord& record);

// The first line of an attempt in each of its files: of no batch, for one that
// comes to none makes lines of earlier attempts void all the same.
struct AttemptRecord {
  int64_t attempt = 0;     // starts of this run so far, from 0
  std::string checkpoint;  // "EPOCH:BATCH" that the attempt started from
};
std::string AttemptLine(const AttemptRecord& record);

// One batch trained on.
struct ConsumedRecord {
  int64_t attempt = 0;     // as AttemptRecord
  std::string checkpoint;  // as AttemptRecord
  uint32_t epoch = 0;
  uint32_t batch = 0;
  int rank = 0;
  std::vector<int64_t> seeds;  // original ids; of edges: sources
  std::vector<int64_t> dst;    // of edges: destinations; else empty
  std::string digest;
};
std::string ConsumedLine(const ConsumedRecord& record);
// The attempt of the last line of a file of these two; -1: it has none, or is
// not there. Errors of FileError.
absl::StatusOr<int64_t> LastAttempt(const std::string& path);

}  // namespace millrace
