// SPDX-License-Identifier: Apache-2.0
#include "tests/support/forked_ranks.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/steady_time.h"

namespace millrace::testing {

struct ForkedRank::Board {
  static constexpr int kShares = 8;
  static constexpr int kMaxRanks = 16;

  std::atomic<int> lost = -1;
  std::atomic<int> shared = 0;
  size_t share_bytes[kShares] = {};
  char shares[kShares][1000] = {};
  std::atomic<bool> gathered[kMaxRanks] = {};
  size_t gathered_bytes[kMaxRanks] = {};
  char gathers[kMaxRanks][1000] = {};
  std::atomic<int> meetings[kMaxRanks] = {};
};

namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(1);
constexpr absl::Duration kTimeout = absl::Minutes(1);
constexpr int kRunning = 1000;

[[noreturn]] void RunRank(const ForkedRanksOptions& options,
                          const std::function<void(ForkedRank&)>& run,
                          ForkedRank rank) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const auto& [name, value] : options.environment) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  run(rank);
  std::fflush(stdout);
  _exit(::testing::Test::HasFailure() ? 1 : 0);
}

int OutcomeOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                : -WTERMSIG(wait_status);
}

// Waits for the processes, and notes the first that was killed.
std::vector<int> Await(const std::vector<pid_t>& processes,
                       absl::Duration silence, std::atomic<int>* lost) {
  const SteadyTime start = SteadyNow();
  std::vector<int> outcomes(processes.size(), kRunning);
  SteadyTime silent_since = SteadyTime::InfiniteFuture();
  int killed = -1;
  bool in_time = true;
  while (std::count(outcomes.begin(), outcomes.end(), kRunning) > 0) {
    for (size_t r = 0; r < processes.size(); ++r) {
      int status = 0;
      if (outcomes[r] != kRunning ||
          waitpid(processes[r], &status, WNOHANG) != processes[r]) {
        continue;
      }
      outcomes[r] = OutcomeOf(status);
      if (outcomes[r] < 0 && killed < 0) {
        killed = static_cast<int>(r);
        silent_since = SteadyNow();
      }
    }
    if (killed >= 0 && SteadyNow() - silent_since > silence) *lost = killed;
    if (in_time && SteadyNow() - start > kTimeout) {
      in_time = false;
      ADD_FAILURE() << "the ranks take longer than " << kTimeout;
      for (const pid_t process : processes) kill(process, SIGKILL);
    }
    absl::SleepFor(kSlice);
  }
  return outcomes;
}

}  // namespace

std::string ForkedRank::Share(const std::string& bytes) {
  const int number = shares_++;
  MILLRACE_CHECK(number < Board::kShares);
  if (rank_ == 0) {
    MILLRACE_CHECK(bytes.size() <= sizeof board_->shares[number]);
    board_->share_bytes[number] = bytes.size();
    std::copy(bytes.begin(), bytes.end(), board_->shares[number]);
    board_->shared = number + 1;
  }
  while (board_->shared <= number) {
    if (lost() >= 0) return "";
    absl::SleepFor(kSlice);
  }
  return {board_->shares[number], board_->share_bytes[number]};
}

std::vector<std::string> ForkedRank::Gather(const std::string& bytes) {
  MILLRACE_CHECK(!board_->gathered[rank_]);
  MILLRACE_CHECK(bytes.size() <= sizeof board_->gathers[rank_]);
  std::copy(bytes.begin(), bytes.end(), board_->gathers[rank_]);
  board_->gathered_bytes[rank_] = bytes.size();
  board_->gathered[rank_] = true;
  std::vector<std::string> all;
  for (int r = 0; r < world_; ++r) {
    while (!board_->gathered[r]) {
      if (lost() >= 0) return {};
      absl::SleepFor(kSlice);
    }
    all.emplace_back(board_->gathers[r], board_->gathered_bytes[r]);
  }
  return all;
}

void ForkedRank::Meet() {
  ++meetings_;
  board_->meetings[rank_] = meetings_;
  for (int r = 0; r < world_; ++r) {
    while (board_->meetings[r] < meetings_) absl::SleepFor(kSlice);
  }
}

int ForkedRank::lost() const { return board_->lost; }

void ForkedRank::Die() const {
  std::fflush(stdout);
  kill(getpid(), SIGKILL);
  while (true) pause();
}

std::vector<int> RunRanks(const ForkedRanksOptions& options,
                          const std::function<void(ForkedRank&)>& run) {
  using Board = ForkedRank::Board;
  MILLRACE_CHECK(options.world <= Board::kMaxRanks);
  void* const mapped = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MILLRACE_CHECK(mapped != MAP_FAILED);
  auto* const board = new (mapped) Board;
  std::fflush(stdout);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < options.world; ++rank) {
    const pid_t process = fork();
    MILLRACE_CHECK(process >= 0);
    if (process == 0) RunRank(options, run, {rank, options.world, board});
    processes.push_back(process);
  }
  std::vector<int> outcomes = Await(processes, options.silence, &board->lost);
  munmap(mapped, sizeof(Board));
  return outcomes;
}

}  // namespace millrace::testing
