// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/train/group/group.h"
#include "client/train/group/signed_store.h"
#include "common/base/steady_time.h"

namespace millrace {

// Lets the ranks of a group agree on the id of their run, which is part of
// every signature afterwards. Rank 0 draws the id. Each other rank asks for it
// with a nonce of its own and accepts only an answer with that nonce, so that
// messages which were overheard in an earlier run are of no use.
// Not thread-safe. Calls throw what TCPStore throws.
class RunHandshake {
 public:
  // Signs with the secret of `group`, as the rank that it names.
  RunHandshake(const GroupAddress& group,
               c10::intrusive_ptr<c10d::TCPStore> store);

  // The run's id; empty on ranks other than 0 until AskRankZero() returns true.
  const std::string& run() const { return run_; }
  // Whether another process had this rank in the same run before.
  bool restarted() const { return restarted_; }

  // On rank 0: answers all ranks that have asked. `joined` says, for each rank,
  // whether it has used the answer.
  void AnswerRanks(const std::vector<bool>& joined);
  // On other ranks: asks, and looks for an answer. Call it again until it
  // returns true.
  bool AskRankZero();

  // FAILED_PRECONDITION: what another rank writes is not signed with this
  // rank's secret. A rank with a different secret keeps writing, so mismatch()
  // reports it only after some seconds. For suspected_mismatch(), one such
  // value is enough, which may come from a stranger.
  const absl::Status& mismatch() const { return mismatch_; }
  const absl::Status& suspected_mismatch() const { return suspected_mismatch_; }

 private:
  struct NotSigned {
    int times = 0;
    SteadyTime since;
  };
  // Reads what `rank` has written under `key`, and looks for a mismatch.
  SignedStore::Value ReadFrom(int rank, const std::string& key);

  const GroupAddress group_;
  SignedStore store_;
  const std::string nonce_;  // not used by rank 0
  std::string run_;
  bool restarted_ = false;
  std::vector<NotSigned> not_signed_;  // per rank
  std::vector<std::string> nonces_;    // per rank, as first seen; rank 0 only
  absl::Status mismatch_;
  absl::Status suspected_mismatch_;
};

}  // namespace millrace
