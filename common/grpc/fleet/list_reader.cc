// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/list_reader.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace millrace {
namespace {

// Longer than any read that does not hang.
constexpr absl::Duration kReadTimeout = absl::Seconds(2);

}  // namespace

class ListReader::State {
 public:
  using Done = std::function<void(const Result&)>;

  explicit State(AddressList addresses) : list_(std::move(addresses)) {}

  bool blocks() const { return list_.kind() != AddressList::Kind::kStatic; }

  void ReadFor(const Done& done) {
    const Result result = list_.Read();
    MutexLock lock(&mutex_);
    if (!stopped_) done(result);
  }

  void Ask(Done done) {
    MutexLock lock(&mutex_);
    asked_ = std::move(done);
    changed_.NotifyAll();
  }

  void Run() {
    while (const Done done = NextAsked()) ReadFor(done);
    MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }

  void Stop() {
    MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }

  // Waits for the thread to end; false if it does not within kReadTimeout.
  bool AwaitEnd() {
    MutexLock lock(&mutex_);
    return changed_.WaitFor(
        &mutex_, kReadTimeout,
        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; });
  }

 private:
  // Waits for the next request; null when stopped.
  Done NextAsked() {
    MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopped_ || asked_ != nullptr;
    };
    changed_.Wait(&mutex_, ready);
    return stopped_ ? nullptr : std::exchange(asked_, nullptr);
  }

  const AddressList list_;

  Mutex mutex_;  // held while `done` runs
  CondVar changed_;
  Done asked_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

ListReader::ListReader(AddressList list)
    : state_(std::make_shared<State>(std::move(list))) {}

ListReader::~ListReader() {
  Stop();
  if (!thread_.joinable()) return;
  if (state_->AwaitEnd()) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void ListReader::Stop() { state_->Stop(); }

void ListReader::Start(std::function<void(const Result&)> done) {
  if (!state_->blocks()) return state_->ReadFor(done);
  state_->Ask(std::move(done));
  if (thread_.joinable()) return;
  thread_ = std::thread([state = state_] { state->Run(); });
}

}  // namespace millrace
