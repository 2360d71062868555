// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_threads.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace::testing {

thread_local KernelPlace kernel_thread, kernel_block, kernel_block_size,
    kernel_grid_size;

namespace {

constexpr unsigned kMaxThreads = 1024;  // of a block, as CUDA has it

[[noreturn]] void Fail(const char* problem, unsigned value) {
  std::fprintf(stderr, "cuda_threads: %s (%#x)\n", problem, value);
  std::abort();
}

// Where threads wait for each other. Some may leave for good.
class Barrier {
 public:
  // No thread may be waiting.
  void Reset(unsigned threads) {
    const std::lock_guard lock(mutex_);
    expected_ = threads;
    arrived_ = 0;
  }

  // The last thread to arrive runs `last` before the others go on.
  template <typename Last>
  void Arrive(Last last) {
    unsigned round;
    {
      const std::lock_guard lock(mutex_);
      round = round_.load(std::memory_order_relaxed);
      if (++arrived_ == expected_) {
        last();
        return Release();
      }
    }
    // Not under the lock, which the threads would have to take in turn.
    round_.wait(round, std::memory_order_acquire);
  }

  void Leave() {
    const std::lock_guard lock(mutex_);
    --expected_;
    if (expected_ > 0 && arrived_ == expected_) Release();
  }

 private:
  void Release() {
    arrived_ = 0;
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }

  std::mutex mutex_;
  unsigned expected_ = 0, arrived_ = 0;
  std::atomic<unsigned> round_ = 0;
};

class Warp {
 public:
  // No lane may be waiting. Lanes from `lanes` on do not exist.
  void Reset(unsigned lanes) {
    const std::lock_guard lock(mutex_);
    ended_ = lanes >= kWarpLanes ? 0 : ~0u << lanes;
  }

  const LaneValues& Meet(unsigned mask, unsigned lane, uint64_t value) {
    Meeting* meeting;
    unsigned round;
    {
      const std::lock_guard lock(mutex_);
      if ((mask >> lane & 1) == 0) Fail("a mask without its own lane", mask);
      if ((mask & ended_) != 0) Fail("a lane of the mask has ended", mask);
      meeting = &Find(mask);
      round = meeting->round.load(std::memory_order_relaxed);
      meeting->values[lane] = value;
      meeting->arrived |= 1u << lane;
      if (meeting->arrived == mask) {
        std::copy(std::begin(meeting->values), std::end(meeting->values),
                  meeting->shown);
        meeting->arrived = 0;
        meeting->round.fetch_add(1, std::memory_order_release);
        meeting->round.notify_all();
        return meeting->shown;
      }
    }
    meeting->round.wait(round, std::memory_order_acquire);
    return meeting->shown;
  }

  void End(unsigned lane) {
    const std::lock_guard lock(mutex_);
    ended_ |= 1u << lane;
    for (const Meeting& meeting : meetings_) {
      if (meeting.arrived != 0 && (meeting.mask >> lane & 1) != 0) {
        Fail("a lane of the mask has ended", meeting.mask);
      }
    }
  }

 private:
  struct Meeting {
    unsigned mask = 0;  // 0 if unused
    unsigned arrived = 0;
    std::atomic<unsigned> round = 0;
    LaneValues values = {}, shown = {};
  };

  // Disjoint masks can meet at the same time; masks that nobody waits for are
  // kept, since lanes may still read what they were shown.
  Meeting& Find(unsigned mask) {
    for (Meeting& meeting : meetings_) {
      if (meeting.mask == 0) meeting.mask = mask;
      if (meeting.mask == mask) return meeting;
    }
    Fail("too many different masks", mask);
  }

  std::mutex mutex_;
  unsigned ended_ = 0;
  std::array<Meeting, 256> meetings_;
};

// The threads that run blocks; as many as the largest block had.
class KernelThreads {
 public:
  ~KernelThreads() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const auto& worker : workers_) worker->wake.notify_one();
    }
    for (const auto& worker : workers_) worker->thread.join();
  }

  void Run(unsigned grid, unsigned block, const std::function<void()>& thread) {
    if (grid == 0) Fail("an empty grid", grid);
    if (block == 0 || block > kMaxThreads) Fail("a bad size of block", block);
    std::unique_lock lock(mutex_);
    thread_ = &thread;
    grid_ = grid;
    block_ = block;
    running_ = block;
    between_blocks_.Reset(block);
    while (warps_.size() * kWarpLanes < block) {
      warps_.push_back(std::make_unique<Warp>());
    }
    for (unsigned index = 0; index < block; ++index) {
      if (index == workers_.size()) AddWorker(index);
      workers_[index]->called = true;
      workers_[index]->wake.notify_one();
    }
    done_.wait(lock, [&] { return running_ == 0; });
  }

  void MeetBlock() {
    within_block_.Arrive([] {});
  }
  Warp& warp() { return *warps_[kernel_thread.x / kWarpLanes]; }

 private:
  struct Worker {
    std::condition_variable wake;
    bool called = false;
    std::thread thread;
  };

  void AddWorker(unsigned index) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.thread =
        std::thread([this, index, &worker] { Work(index, worker); });
  }

  void Work(unsigned index, Worker& worker) {
    std::unique_lock lock(mutex_);
    while (true) {
      worker.wake.wait(lock, [&] { return stopping_ || worker.called; });
      if (stopping_) return;
      worker.called = false;
      lock.unlock();
      RunThread(index);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  void RunThread(unsigned index) {
    kernel_thread = {index, 0, 0};
    kernel_block_size = {block_, 1, 1};
    kernel_grid_size = {grid_, 1, 1};
    for (unsigned block = 0; block < grid_; ++block) {
      kernel_block = {block, 0, 0};
      // No thread may end before all have begun: waking up one after another
      // would hide races.
      between_blocks_.Arrive([this] { StartBlock(); });
      (*thread_)();
      warp().End(KernelLane());
      within_block_.Leave();
    }
  }

  void StartBlock() {
    within_block_.Reset(block_);
    for (unsigned w = 0; w * kWarpLanes < block_; ++w) {
      warps_[w]->Reset(block_ - w * kWarpLanes);
    }
  }

  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopping_ = false;
  unsigned running_ = 0;
  // Not changed during a launch.
  const std::function<void()>* thread_ = nullptr;
  unsigned grid_ = 0, block_ = 0;
  Barrier between_blocks_, within_block_;
  std::vector<std::unique_ptr<Warp>> warps_;
};

KernelThreads& Threads() {
  static KernelThreads threads;
  return threads;
}

}  // namespace

void RunBlocks(unsigned grid, unsigned block,
               const std::function<void()>& thread) {
  Threads().Run(grid, block, thread);
}

void MeetBlock() { Threads().MeetBlock(); }

const LaneValues& MeetWarp(unsigned mask, uint64_t value) {
  return Threads().warp().Meet(mask, KernelLane(), value);
}

}  // namespace millrace::testing
