// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace millrace {

// The streaming calls that are running: bounds their number, ends those whose
// time is over (gRPC does so only for clients that gave a deadline), and lets
// a server drain. States: open -> draining.
// Threads: any.
class LiveCalls {
 public:
  explicit LiveCalls(int max_calls);
  ~LiveCalls();
  LiveCalls(const LiveCalls&) = delete;
  LiveCalls& operator=(const LiveCalls&) = delete;

  // A call that may run must Leave() before its context dies.
  // UNAVAILABLE: draining. RESOURCE_EXHAUSTED: too many.
  absl::Status Enter(::grpc::CallbackServerContext* context,
                     absl::Time deadline);
  void Leave(::grpc::CallbackServerContext* context);

  // Refuses new calls from now on.
  void StartDraining();
  bool draining() const;

  // Waits until no call is left; false when `deadline` came first.
  bool AwaitNone(absl::Time deadline) const;

  int count() const;

 private:
  void EndExpired();

  const size_t max_calls_;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<::grpc::CallbackServerContext*, absl::Time> calls_
      ABSL_GUARDED_BY(mutex_);
  // The call that is being ended; its context must live until that is done.
  ::grpc::CallbackServerContext* ending_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread reaper_;  // last: uses all of the above
};

}  // namespace millrace
