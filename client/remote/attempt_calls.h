// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/grpc/call/call.h"

namespace millrace {

// The calls of one attempt to fetch a batch, which run side by side. The first
// failure cancels the others, and the attempt ends with the last call.
// States: open -> closed (all calls that do not depend on others have been
// started) -> ended (no call is left).
// Threads: any.
class AttemptCalls : public std::enable_shared_from_this<AttemptCalls> {
 public:
  // Like StartRowCall(): if it fails, nothing was started.
  using Start =
      std::function<absl::StatusOr<std::shared_ptr<Call>>(CallDone done)>;

  // `on_end` gets the first failure, or OK.
  explicit AttemptCalls(CallDone on_end) : on_end_(std::move(on_end)) {}

  // Starts a call. Allowed until Close(), and after that only while another
  // call is running, which keeps the attempt from ending. An error of `start`
  // counts as a failure.
  absl::Status Add(const Start& start);

  // Call once; `status` is a failure to start the calls. The attempt may end
  // before this returns.
  void Close(const absl::Status& status);

  // Cancels the calls, and those that are added later.
  void Cancel();

 private:
  void Keep(std::shared_ptr<Call> call);
  void OnCallDone(const absl::Status& status);

  Mutex mutex_;
  CallDone on_end_ ABSL_GUARDED_BY(mutex_);  // until the end
  int left_ ABSL_GUARDED_BY(mutex_) = 1;     // calls, and 1 until Close()
  // The calls that were started; shared with gRPC.
  std::vector<std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the first
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
