// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/grpc/call/call.h"

namespace millrace {

// Runs the calls of one blocking request a few at a time, so that little is in
// flight however many owners are asked.
// Threads: one thread uses the group; calls end on others.
class CallGroup {
 public:
  static constexpr size_t kMaxRunning = 8;

  // Like StartRowCall(): if it fails, nothing was started.
  using Start =
      std::function<absl::StatusOr<std::shared_ptr<Call>>(CallDone done)>;

  // Cancels all calls once `closing`, which must outlive the group, has been
  // notified or the program was interrupted.
  explicit CallGroup(const Notification& closing) : closing_(closing) {}
  // Call Wait() first.
  ~CallGroup() = default;
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // Starts a call once fewer than kMaxRunning run. Does nothing after a
  // cancellation or a failure that is not retryable.
  void Add(const Start& start);

  // Waits for all calls. Returns CANCELLED if they were cancelled, else the
  // first failure that is not retryable, else the first failure.
  absl::Status Wait();

  // After Wait(): whether the call of the `index`th Add() succeeded.
  bool succeeded(size_t index) const;

 private:
  void Done(size_t index, const absl::Status& status);
  void AwaitRunning(size_t max_running);
  void Cancel();

  const Notification& closing_;

  // Used only by the waiting thread.
  size_t added_ = 0;
  bool cancelled_ = false;
  std::map<size_t, std::shared_ptr<Call>> calls_;

  mutable Mutex mutex_;
  CondVar ended_one_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<size_t> ended_ ABSL_GUARDED_BY(mutex_);  // may still be in calls_
  std::vector<bool> succeeded_ ABSL_GUARDED_BY(mutex_);
  absl::Status first_ ABSL_GUARDED_BY(mutex_);  // first failure
  // The first failure that is not retryable.
  absl::Status final_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
