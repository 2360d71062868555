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
#include "common/grpc/call.h"

namespace millrace {

// The calls of one blocking request: a few at a time, so that what is in
// flight stays small however many owners are asked.
// Threads: one; the calls end on others.
class CallGroup {
 public:
  static constexpr size_t kMaxRunning = 8;

  // As StartRowCall: an error where nothing was started.
  using Start =
      std::function<absl::StatusOr<std::shared_ptr<Call>>(CallDone done)>;

  // Once `closing` has been notified, which must outlive the group, or the
  // program was interrupted, all calls are cancelled.
  explicit CallGroup(const Notification& closing) : closing_(closing) {}
  // Wait() must have been called.
  ~CallGroup() = default;
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // Starts a call, once fewer than kMaxRunning run. Does nothing after a
  // cancellation or a failure that no repetition mends.
  void Add(const Start& start);

  // Waits for all calls. The result: CANCELLED as above; of the failures the
  // first that no repetition mends, else the first.
  absl::Status Wait();

  // After Wait(): whether the `index`th Add() led to a call that succeeded.
  bool succeeded(size_t index) const;

 private:
  void Done(size_t index, const absl::Status& status);
  void AwaitRunning(size_t most);
  void Cancel();

  const Notification& closing_;

  // Used by the waiting thread alone.
  size_t added_ = 0;
  bool cancelled_ = false;
  std::map<size_t, std::shared_ptr<Call>> calls_;

  mutable Mutex mutex_;
  CondVar ended_one_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<size_t> ended_ ABSL_GUARDED_BY(mutex_);  // may be in calls_
  std::vector<bool> succeeded_ ABSL_GUARDED_BY(mutex_);
  absl::Status first_ ABSL_GUARDED_BY(mutex_);  // failure
  absl::Status final_ ABSL_GUARDED_BY(mutex_);  // that is not retryable
};

}  // namespace millrace
