// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/steady_time.h"

namespace millrace {

// Shows how far a long job is: a bar that redraws itself on stderr when it is
// a terminal, else a log line every 10 seconds and one at the end.
// Single-threaded.
class Progress {
 public:
  // `total` < 0: unknown. `unit` is a plural noun: "edges", "batches".
  Progress(std::string what, int64_t total, std::string unit);
  // Ends the line (a terminal) without a summary.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Set(int64_t done);
  void Add(int64_t more) { Set(done_ + more); }
  // Text shown behind the numbers, e.g. "loss 0.53".
  void SetNote(std::string note) { note_ = std::move(note); }
  // Final line with the total and the time it took.
  void Finish();

 private:
  void Show(bool final_line);

  const std::string what_;
  const int64_t total_;
  const std::string unit_;
  const SteadyTime start_;
  const bool terminal_;
  int64_t done_ = 0;
  std::string note_;
  SteadyTime next_show_;
  bool drawn_ = false;
  bool finished_ = false;
};

}  // namespace millrace
