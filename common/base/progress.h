// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/base/steady_time.h"

namespace millrace {

// How far a long job has got.
struct ProgressState {
  std::string what;   // "read edges"
  std::string unit;   // a plural such as "edges"; empty if nothing is counted
  int64_t total = 0;  // <= 0 if unknown
  int64_t done = 0;
  int64_t before = 0;  // value of `done` when `elapsed` was 0
  absl::Duration elapsed;
  std::string note;  // e.g. "loss 0.53"
};

// "read edges: 1.2M/4M edges [######..............] 30%, 2.0 s, 600k/s, 4s
// left, NOTE", in one line; the bar is left out unless `bar`. The time left
// assumes the average rate so far.
std::string ProgressText(const ProgressState& state, bool bar);
// The text for a finished job: "read edges: 4M edges, 6.6 s, 600k/s, NOTE".
std::string SummaryText(const ProgressState& state);

// Shows how far a long job has got: as a bar that redraws itself if stderr is a
// terminal and the log is text, otherwise as an event of the log every 10
// seconds and one at the end.
// Not thread-safe.
class Progress {
 public:
  // The arguments are as in ProgressState.
  Progress(std::string what, int64_t total, std::string unit);
  // Erases the bar; prints nothing else.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // For a job that is resumed; `done` does not count towards its rate.
  void StartAt(int64_t done) { state_.done = state_.before = done; }
  void Set(int64_t done);
  void Add(int64_t more) { Set(state_.done + more); }
  // Text shown after the numbers, e.g. "loss 0.53".
  void SetNote(std::string note) { state_.note = std::move(note); }
  // Prints the final line, with the total and the time it took.
  void Finish();

 private:
  void Draw(const std::string& text, const char* end);

  ProgressState state_;
  const SteadyTime start_;
  const bool terminal_;
  SteadyTime next_show_;
  bool drawn_ = false;
  bool finished_ = false;
};

// The control characters that erase the terminal's current line. Write them
// before a line that may replace a progress bar. Empty if stderr is not a
// terminal.
const char* EraseLine();

}  // namespace millrace
