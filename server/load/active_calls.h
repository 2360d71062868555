// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "server/load/fair_shares.h"

namespace millrace {

// The running calls of some methods: bounds their number, ends calls whose
// deadline has passed (gRPC does so only if the client set one) or whose client
// makes no progress, and lets a server drain.
//
// When all places are taken, a call of a client with less than its fair share
// takes the place of another call, which is ended: among clients that exceed
// their share, the call that has waited longest for its client, else the one
// that entered last. A call that is being ended no longer counts.
//
// States: open -> draining.
// Threads: any.
class ActiveCalls {
 public:
  using Context = ::grpc::CallbackServerContext;
  // `why` is OK if the call's deadline has passed or its client made no
  // progress, else the status to send to the client.
  using End = std::function<void(Context*, const absl::Status& why)>;

  // `end` ends a call from another thread, possibly while the call runs.
  explicit ActiveCalls(int max_calls, End end = CancelCall);
  ~ActiveCalls();
  ActiveCalls(const ActiveCalls&) = delete;
  ActiveCalls& operator=(const ActiveCalls&) = delete;

  // Whether a call of `client` (see ClientName()) may enter now.
  // UNAVAILABLE: draining. RESOURCE_EXHAUSTED: too many calls.
  absl::Status CheckRoom(const std::string& client) const;

  // A call that has entered must Leave() before its context is destroyed.
  // Leave() does nothing if repeated or if the call never entered. Enter()
  // fails like CheckRoom().
  absl::Status Enter(Context* context, const std::string& client,
                     SteadyTime deadline);
  void Leave(Context* context);

  // Marks the call as waiting for its client, which must make progress (send
  // its request, or take what was written) by `until`. The call must have
  // entered.
  void AwaitClient(Context* context, SteadyTime until);
  void ClientMadeProgress(Context* context);

  // Makes the reaper end a call soon, to make room for other clients (see
  // EndedForOthers()). Does nothing for a call that has left.
  void EndForOthers(Context* context);

  // Refuses new calls from now on.
  void StartDraining();
  bool draining() const;

  // Waits until no call is left; returns false if `deadline` passes first.
  bool AwaitNone(SteadyTime deadline) const;

  // Calls that have not left yet.
  int count() const;
  // Clients that hold places.
  size_t clients() const;
  // Calls that were ended for other clients so far.
  uint64_t ended_for_others() const;

 private:
  struct Call {
    std::string client;
    SteadyTime deadline;
    SteadyTime entered;
    SteadyTime waiting_since = SteadyTime::InfiniteFuture();
    SteadyTime client_until = SteadyTime::InfiniteFuture();
    bool for_others = false;  // must be ended for other clients
    bool ended = false;       // has been ended, but has not left yet

    // Whether to end this call for others before `other`.
    bool EndsBefore(const Call& other) const {
      return waiting_since < other.waiting_since ||
             (waiting_since == other.waiting_since && entered > other.entered);
    }
    bool IsDue(SteadyTime now) const {
      return !ended && (for_others || deadline < now || client_until < now);
    }
  };

  static void CancelCall(Context* context, const absl::Status& why);

  absl::Status CheckRoomLocked(const std::string& client) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakePlaceFor(const std::string& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkForOthers(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Reap();
  void EndCall(Context* context, SteadyTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const End end_;

  mutable Mutex mutex_;
  CondVar wake_reaper_;
  // Signalled when no calls are left, and when `ending_` is no longer in use.
  mutable CondVar left_;
  // All calls that have not left; those being ended for others hold no place.
  absl::flat_hash_map<Context*, Call> calls_ ABSL_GUARDED_BY(mutex_);
  FairShares places_ ABSL_GUARDED_BY(mutex_);
  // The call that is being ended; its context must live until that is done.
  Context* ending_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool any_for_others_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t ended_for_others_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread reaper_;  // last, because it uses all of the above
};

// The status of a call that was ended for other clients.
// RESOURCE_EXHAUSTED: the client may retry, and when.
absl::Status EndedForOthers();

}  // namespace millrace
