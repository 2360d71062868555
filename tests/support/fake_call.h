// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/grpc/call/call.h"

namespace millrace::testing {

// A call whose progress a test decides. A cancellation ends it at once.
// Threads: any, except that OnMessage() must not be called during End().
class FakeCall final : public Call {
 public:
  explicit FakeCall(std::shared_ptr<CallObserver> observer)
      : observer_(std::move(observer)) {}

  // Makes a message arrive. CANCELLED: the call has ended. Also returns the
  // errors of the observer.
  absl::Status OnMessage() {
    const std::shared_ptr<CallObserver> observer = this->observer();
    if (observer == nullptr) return absl::CancelledError("the call is over");
    return observer->OnMessage();
  }

  // Ends the call unless it has already ended.
  void End(absl::Status status) {
    std::shared_ptr<CallObserver> observer;
    {
      MutexLock lock(&mutex_);
      observer = std::exchange(observer_, nullptr);
    }
    if (observer != nullptr) observer->OnEnd(std::move(status));
  }

  void Cancel() override {
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    End(absl::CancelledError("cancelled"));
  }

  bool cancelled() const {
    MutexLock lock(&mutex_);
    return cancelled_;
  }

  // The observer of the call's progress; null once the call has ended.
  std::shared_ptr<CallObserver> observer() const {
    MutexLock lock(&mutex_);
    return observer_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<CallObserver> observer_
      ABSL_GUARDED_BY(mutex_);  // shared with the caller
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace::testing
