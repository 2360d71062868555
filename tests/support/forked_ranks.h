// SPDX-License-Identifier: Apache-2.0
// Ranks of a group as processes that a test forks, and what stands in for their
// rendezvous and heartbeat.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace millrace::testing {

// One of the processes. Calls may be made by any of its threads, one at a time.
class ForkedRank {
 public:
  struct Board;  // memory that the processes share

  ForkedRank(int rank, int world, Board* board)
      : rank_(rank), world_(world), board_(board) {}

  int rank() const { return rank_; }
  int world() const { return world_; }

  // Returns rank 0's bytes, at most 1000, on every rank. All ranks make the
  // same calls, at most 8.
  std::string Share(const std::string& bytes);
  // Returns the bytes of all ranks, each at most 1000, in their order; nothing
  // if a rank is lost before. All ranks call it once at most.
  std::vector<std::string> Gather(const std::string& bytes);
  // Waits until all ranks have called this as often as this one.
  void Meet();
  // The rank that was killed, once that has been noticed; otherwise -1.
  int lost() const;
  // Ends this process like a crash.
  [[noreturn]] void Die() const;

 private:
  const int rank_;
  const int world_;
  Board* const board_;
  int shares_ = 0;
  int meetings_ = 0;
};

struct ForkedRanksOptions {
  int world = 2;
  // From the death of a rank until the others notice it.
  absl::Duration silence = absl::Milliseconds(50);
  std::map<std::string, std::string> environment = {};  // in addition to ours
};

// Runs each rank in a process of its own, and returns how they ended, by rank:
// the status that they exited with, or the negative number of the signal that
// killed them. The status is 1 if there were failures of the test in the
// process. Processes that take longer than a minute are killed. This process
// must have one thread, and must not have used CUDA.
std::vector<int> RunRanks(const ForkedRanksOptions& options,
                          const std::function<void(ForkedRank&)>& run);

}  // namespace millrace::testing
