// SPDX-License-Identifier: Apache-2.0
#include "client/remote/attempt_calls.h"

#include <utility>

namespace millrace {

absl::Status AttemptCalls::Add(const Start& start) {
  {
    MutexLock lock(&mutex_);
    ++left_;
  }
  absl::StatusOr<std::shared_ptr<Call>> call =
      start([self = shared_from_this()](const absl::Status& status) {
        self->OnCallDone(status);
      });
  if (call.ok()) {
    Keep(*std::move(call));
    return absl::OkStatus();
  }
  OnCallDone(call.status());
  return call.status();
}

void AttemptCalls::Close(const absl::Status& status) { OnCallDone(status); }

void AttemptCalls::Keep(std::shared_ptr<Call> call) {
  bool must_cancel = false;
  {
    MutexLock lock(&mutex_);
    must_cancel = !failure_.ok() || cancelled_;
    calls_.push_back(call);
  }
  if (must_cancel) call->Cancel();
}

void AttemptCalls::OnCallDone(const absl::Status& status) {
  std::vector<std::shared_ptr<Call>> to_cancel, ended;
  CallDone on_end;
  absl::Status failure;
  {
    MutexLock lock(&mutex_);
    if (!status.ok() && failure_.ok()) {
      failure_ = status;
      to_cancel = calls_;
    }
    if (--left_ == 0) {
      on_end = std::move(on_end_);
      failure = failure_;
      ended.swap(calls_);
    }
  }
  for (const std::shared_ptr<Call>& call : to_cancel) call->Cancel();
  if (on_end == nullptr) return;
  ended.clear();  // the calls hold what their receivers have
  on_end(std::move(failure));
}

void AttemptCalls::Cancel() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    calls = calls_;
  }
  for (const std::shared_ptr<Call>& call : calls) call->Cancel();
}

}  // namespace millrace
