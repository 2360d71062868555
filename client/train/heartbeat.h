// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/train/group.h"
#include "common/base/steady_time.h"

namespace millrace {

struct HeartbeatOptions {
  absl::Duration interval = absl::Seconds(1);
  // A rank unheard of for this long is lost, but for one that has not come up
  // yet (see WaitForAll); so is rank 0 when its store takes as long to answer,
  // even for the first time. Time in which this process did
  // not run itself (a stopped job, a suspended computer) does not count.
  absl::Duration silence = absl::Seconds(12);
  // A process that has not ended this long after a loss was seen (its main
  // thread hangs in a collective) is ended with status 1 and the message.
  absl::Duration grace = absl::Seconds(6);
  std::function<SteadyTime()> now = SteadyNow;
};

// Notices ranks that died, hang in the kernel or were stopped, and says which:
// a blocked collective cannot. Each rank bumps a counter in rank 0's store
// from a thread of its own and watches the others' counters; a second thread
// watches the first, because a store whose rank 0 is stopped never answers.
// States: beating -> ended, by Finish() or Fail() or a loss.
// Threads: any may call any method.
class Heartbeat {
 public:
  // The store of rank 0 must be up; does not wait for it.
  static std::unique_ptr<Heartbeat> Start(const GroupAddress& group,
                                          const HeartbeatOptions& options = {});
  // Stops both threads; a rank that neither finished nor failed before looks
  // lost to the others.
  ~Heartbeat();

  // OK, or UNAVAILABLE naming the first rank found lost, or failed and why;
  // what an option was refused with ("--...") keeps its code.
  absl::Status status() const;
  // Whether the store has seen this rank before: it is of an earlier start of
  // the group, which has lost the rank, may not know it yet and is told. Then
  // status() is an error; a new start's store comes up at the same address.
  bool store_is_old() const;
  // Waits until all ranks have come up or status() is an error, for at most
  // `timeout`; returns the ranks that have not come up.
  std::vector<int> WaitForAll(absl::Duration timeout) const;
  // Waits for status() to be an error, for at most `timeout`; returns it.
  absl::Status WaitForLoss(absl::Duration timeout) const;

  // Tells the others that this rank is done: its silence is no loss.
  void Finish();
  // Tells the others that this rank ends, and why (an error).
  void Fail(const absl::Status& why);
  // Waits until every other rank that came up has finished or failed, at most
  // `timeout`.
  // Rank 0 calls it last: its store goes with it.
  void WaitForOthers(absl::Duration timeout) const;

 private:
  struct State;
  explicit Heartbeat(std::shared_ptr<State> state);

  // Shared with the threads: one that is stuck in the store outlives this.
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
