// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// Where the time of one batch goes on its way to this client. Made only for
// --trace-slow.
// Threads: any may call NoteCall().
class FetchTrace {
 public:
  // A call for a part of the batch that has ended, well or not.
  struct Ended {
    std::string method;  // "/millrace.v1.Sampler/Sample"
    std::string server;  // that answered
    int partition = 0;
    // More than one if the first was slow or lost.
    int replicas_asked = 1;
    absl::Duration time;
  };

  struct Fetched {
    const std::string& request_id;  // of the last attempt
    uint64_t epoch = 0;
    uint64_t batch = 0;
    int home = 0;
    absl::StatusCode code = absl::StatusCode::kOk;
    int attempts = 1;
    uint64_t bytes = 0;  // of the batch; 0 if it failed
  };

  explicit FetchTrace(SteadyTime start) : start_(start) {}

  void NoteCall(Ended call);

  // Logs the batch, whose fetch ends at `now`, if it took longer than `limit`,
  // as far as SlowBatchLimit() allows.
  void LogIfSlow(const Fetched& batch, SteadyTime now, absl::Duration limit);

 private:
  void AppendCalls(LogFields& fields);

  const SteadyTime start_;
  Mutex mutex_;
  // These count the calls of all attempts at the batch.
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int resent_ ABSL_GUARDED_BY(mutex_) = 0;
  Ended slowest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
