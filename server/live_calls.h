// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// The calls of some methods that are running: bounds their number, ends those
// whose time is over (gRPC does so only for clients that gave a deadline) or
// whose client does not move, and lets a server drain.
// States: open -> draining.
// Threads: any.
class LiveCalls {
 public:
  using Context = ::grpc::CallbackServerContext;
  using End = std::function<void(Context*)>;

  // `end` ends a call from another thread, which may be within it.
  explicit LiveCalls(
      int max_calls, End end = [](Context* call) { call->TryCancel(); });
  ~LiveCalls();
  LiveCalls(const LiveCalls&) = delete;
  LiveCalls& operator=(const LiveCalls&) = delete;

  // Whether a call may enter now.
  // UNAVAILABLE: draining. RESOURCE_EXHAUSTED: too many.
  absl::Status CheckRoom() const;

  // A call that may run must Leave() before its context dies; again, or without
  // having entered, it does nothing. Errors as CheckRoom.
  absl::Status Enter(Context* context, SteadyTime deadline);
  void Leave(Context* context);

  // The call waits for its client, which must have moved by `until`: sent its
  // request, or taken what is written. For calls that entered.
  void AwaitClient(Context* context, SteadyTime until);
  void ClientMoved(Context* context);

  // Refuses new calls from now on.
  void StartDraining();
  bool draining() const;

  // Waits until no call is left; false when `deadline` came first.
  bool AwaitNone(SteadyTime deadline) const;

  int count() const;

 private:
  struct Times {
    SteadyTime deadline;
    SteadyTime client = SteadyTime::InfiniteFuture();
    bool Expired(SteadyTime now) const {
      return deadline < now || client < now;
    }
  };
  absl::Status Room() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndExpired();
  bool IsExpired(Context* context, SteadyTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_calls_;
  const End end_;

  mutable Mutex mutex_;
  CondVar stop_;          // the reaper
  mutable CondVar left_;  // no call, or the one that is being ended
  absl::flat_hash_map<Context*, Times> calls_ ABSL_GUARDED_BY(mutex_);
  // The call that is being ended; its context must live until that is done.
  Context* ending_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread reaper_;  // last: uses all of the above
};

}  // namespace millrace
