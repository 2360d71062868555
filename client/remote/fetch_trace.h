// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// Where the time of one batch goes on its way to this client. Made only for
// --trace-slow.
// Threads: any may call NoteCall().
class FetchTrace {
 public:
  // A call for a part of the batch that has ended.
  struct Ended {
    std::string method;  // "/millrace.v1.Sampler/Sample"
    std::string server;  // that answered
    int partition = 0;
    int replicas_asked = 1;  // more than one if it was hedged or retried
    absl::Duration time;
  };

  struct Fetched {
    const std::string& request_id;  // of the last attempt
    uint64_t epoch = 0;
    uint64_t batch = 0;
    int home = 0;
    int attempts = 1;
    uint64_t bytes = 0;
  };

  explicit FetchTrace(SteadyTime start) : start_(start) {}

  void NoteCall(Ended call);

  // Logs the batch, which is there at `now`, if it took longer than `limit`, as
  // far as TraceLimit() allows.
  void LogIfSlow(const Fetched& batch, SteadyTime now, absl::Duration limit);

 private:
  const SteadyTime start_;
  Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int hedged_ ABSL_GUARDED_BY(mutex_) = 0;
  Ended slowest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
