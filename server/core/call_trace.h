// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/steady_time.h"

namespace millrace {

// Where the time of one call goes. Made only for --trace-slow.
// Threads: one at a time, except that the thread that writes may call
// AwaitClient() and ClientMadeProgress().
class CallTrace {
 public:
  // A hop of a Sample call.
  struct Hop {
    int number = 0;
    absl::Duration total;
    absl::Duration waiting;  // for the owners of other partitions
    // The owner that answered last, or failed; -1 if no other was asked.
    int slowest_partition = -1;
    std::string slowest_server = {};  // empty if there was none to ask
  };

  struct BatchName {
    uint64_t epoch;
    uint64_t batch;
    int partition;
  };

  explicit CallTrace(SteadyTime arrived) : arrived_(arrived) {}

  // The request is there.
  void NoteRequest(SteadyTime now) { read_ = now; }
  // From `now` on, the call waits for a thread to make its next messages. (It
  // waits for the first ones since NoteRequest().)
  void NoteLeafTask(SteadyTime now) { leaf_task_ = now; }
  // A thread works for the call from `begin` to `end`, which made `bytes` of
  // the answer.
  void NoteWork(SteadyTime begin, SteadyTime end, size_t bytes);
  // What a Sample call asks for, and how long sampling took, hops included;
  // part of the work.
  void NoteBatch(const BatchName& batch) { batch_ = batch; }
  void NoteSampling(absl::Duration time) { sampling_ = time; }
  void NoteHop(Hop hop) { hops_.push_back(std::move(hop)); }
  void AwaitClient(SteadyTime now) { writing_since_ = now; }
  void ClientMadeProgress(SteadyTime now);
  // Nothing is left to do but to send the status.
  void NoteFinish(SteadyTime now) { finished_ = now; }
  void NoteStatus(const char* method, const absl::Status& status);

  // Logs the call, which ends at `now`, if it took longer than `limit`, as far
  // as SlowBatchLimit() or SlowCallLimit() allows.
  void LogIfSlow(const std::string& client, SteadyTime now,
                 absl::Duration limit);

 private:
  void EndLeafTask(SteadyTime now);
  LogFields Fields(const std::string& client, SteadyTime now) const;

  const SteadyTime arrived_;
  std::optional<SteadyTime> read_;
  std::optional<SteadyTime> began_;      // to be worked on
  std::optional<SteadyTime> leaf_task_;  // while the call waits for a thread
  absl::Duration leaf_queue_, work_, sampling_;
  std::optional<SteadyTime> finished_;
  size_t bytes_ = 0;
  std::optional<BatchName> batch_;  // of a Sample call
  std::vector<Hop> hops_;
  const char* method_ = "";
  std::string code_;

  // Used by the thread that writes, and last by LogIfSlow().
  std::optional<SteadyTime> writing_since_;
  absl::Duration writing_;
};

}  // namespace millrace
