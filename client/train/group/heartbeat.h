// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/train/group/group.h"
#include "client/train/group/message_signer.h"
#include "common/base/steady_time.h"

namespace millrace {

struct HeartbeatOptions {
  absl::Duration interval = absl::Seconds(1);
  // A rank that was heard once and then not for this long is lost; so is rank 0
  // when its store takes this long to answer, even for the first time. Time in
  // which this process did not run itself (a stopped job, a suspended computer)
  // does not count.
  absl::Duration silence = absl::Seconds(12);
  // A process that has not ended this long after a loss was seen (its main
  // thread hangs in a collective) is ended with status 1 and the message.
  absl::Duration grace = absl::Seconds(6);
  std::function<SteadyTime()> now = SteadyNow;
};

// Notices ranks that died, hang in the kernel or were stopped, and says which
// ones; a blocked collective cannot. On a thread of its own, each rank
// periodically writes its state to rank 0's store, and reads those of the
// others. A second thread watches the first one, because the store never
// answers if rank 0 is stopped. Messages are signed with the group's secret;
// those that are not signed are ignored.
// States: beating -> ended, by Finish() or Fail() or a loss.
// Threads: any may call any method.
class Heartbeat {
 public:
  // Rank 0 must listen already. Does not wait for it to answer.
  static std::unique_ptr<Heartbeat> Start(const GroupAddress& group,
                                          const HeartbeatOptions& options = {});
  // Stops both threads; a rank that neither finished nor failed before looks
  // lost to the others.
  ~Heartbeat();

  // UNAVAILABLE: a rank was lost or has failed (says which was first, and why).
  // FAILED_PRECONDITION: another rank has a different secret. In a group with a
  // secret, a usage error (field_error.h) stays one.
  absl::Status status() const;
  // Whether the group that was found is from an earlier start, in which another
  // process had this rank. That group learns that it has lost a rank. status()
  // is then an error, and a new group has to meet at the same address.
  bool group_is_old() const;
  // Signs messages of this run. Call it only after WaitForAll() has returned no
  // ranks.
  MessageSigner signer() const;
  // Waits until all ranks have joined or status() is an error, for at most
  // `timeout`; returns the ranks that have not joined.
  std::vector<int> WaitForAll(absl::Duration timeout) const;
  // Waits for status() to be an error, for at most `timeout`; returns it.
  absl::Status WaitForLoss(absl::Duration timeout) const;

  // Tells the others that this rank is done, so that they do not miss it.
  void Finish();
  // Tells the others that this rank ends, and why (an error).
  void Fail(const absl::Status& why);
  // Waits until every other rank that joined has finished or failed, for at
  // most `timeout`. Rank 0 calls it last, because its store ends with it.
  void WaitForOthers(absl::Duration timeout) const;

 private:
  struct State;
  explicit Heartbeat(std::shared_ptr<State> state);

  // Shared with the threads: one that is stuck in the store outlives this.
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
