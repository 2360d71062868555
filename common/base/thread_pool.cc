// SPDX-License-Identifier: Apache-2.0
#include "common/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

ThreadPool::ThreadPool(std::string name, int threads, size_t capacity)
    : capacity_(capacity), busy_(SteadyNow()) {
  MILLRACE_CHECK(threads > 0);
  // The kernel allows at most 15 bytes for a thread's name.
  name.resize(std::min<size_t>(name.size(), 15));
  threads_.reserve(static_cast<size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { Work(); });
      pthread_setname_np(threads_.back().native_handle(), name.c_str());
    }
  } catch (const std::system_error&) {
    Close();  // destroying an unjoined thread would end the process
    throw;
  }
}

ThreadPool::~ThreadPool() { Close(); }

bool ThreadPool::TrySubmit(std::function<void()> task,
                           const std::string& client, const void* owner) {
  MutexLock lock(&mutex_);
  // A task that an idle thread is about to take does not wait.
  const size_t tasks = queue_.waiting() + queue_.running();
  if (closed_ || tasks >= capacity_ + threads_.size()) return false;
  queue_.Add(client, std::move(task), owner);
  work_.NotifyOne();
  return true;
}

bool ThreadPool::Remove(const void* owner) {
  // Destroyed after the lock is released, as its captures may be large.
  FairQueue::Task removed;
  MutexLock lock(&mutex_);
  removed = queue_.Remove(owner);
  return removed != nullptr;
}

void ThreadPool::Close() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    work_.NotifyAll();
  }
  MutexLock lock(&join_mutex_);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadPool::Work() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || queue_.waiting() > 0;
  };
  while (true) {
    FairQueue::Running running;
    SteadyTime start;
    {
      MutexLock lock(&mutex_);
      work_.Wait(&mutex_, ready);
      if (queue_.waiting() == 0) return;
      running = queue_.Take();
      start = SteadyNow();
      NoteRunning(start);
    }
    running.task();
    running.task = nullptr;  // outside the lock, as its captures may be large
    MutexLock lock(&mutex_);
    const SteadyTime end = SteadyNow();
    queue_.End(running.client, end - start);
    NoteRunning(end);
  }
}

void ThreadPool::NoteRunning(SteadyTime now) {
  busy_.SetGrowth(static_cast<double>(queue_.running()), now);
}

ThreadPool::Load ThreadPool::load() const {
  MutexLock lock(&mutex_);
  const SteadyTime now = SteadyNow();
  return {.waiting = queue_.waiting(),
          .running = queue_.running(),
          .busy_seconds = busy_.Total(now),
          .busy_ratio = busy_.PerSecond(now) / threads()};
}

}  // namespace millrace
