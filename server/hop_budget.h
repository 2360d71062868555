// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"
#include "server/admission.h"

namespace millrace {

// Reserves the memory of the hops of one Sample call: before a hop what is
// known of it, and during it what the answers of other servers turn out to
// hold. All errors are those of Reservation::GrowTo.
// Threads: one. All references must outlive it.
class HopBudget {
 public:
  // `held`: bytes that the call needs besides its hops.
  HopBudget(const Store& store, Admission::Reservation& reservation,
            uint64_t held)
      : store_(store), reservation_(reservation), bytes_(held) {}

  // Before anything of a hop is allocated.
  absl::Status StartHop(const DrawContext& draw,
                        std::span<const Frontier> frontiers);

  // Before another server is asked for nodes of the frontiers marked in
  // `asked`: its reply is held before anything can be said about it. (A single
  // list that is longer than a reply shall be is not foreseen.)
  absl::Status ExpectReply(const std::vector<bool>& asked);

  // Before `bytes` are allocated besides the hops.
  absl::Status Reserve(uint64_t bytes) {
    bytes_ += bytes;
    return Grow();
  }
  // Leaves what was reserved to the rest of the call.
  void Release(uint64_t bytes) { bytes_ -= bytes; }

  // Before `picks` picks of frontiers[frontier] are taken out of a reply.
  absl::Status AddPicks(size_t frontier, uint64_t picks);

 private:
  // A frontier of the current hop.
  struct Expected {
    uint64_t room = 0;         // picks of replies that are reserved already
    uint64_t reply_bytes = 0;  // largest reply that was not foreseen
  };
  Expected Expect(const DrawContext& draw, const Frontier& frontier);
  absl::Status Grow() { return reservation_.GrowTo(bytes_ + reply_bytes_); }

  const Store& store_;
  Admission::Reservation& reservation_;
  uint64_t bytes_;            // held, and of the hops so far
  uint64_t reply_bytes_ = 0;  // of replies in flight, in this hop
  uint64_t bytes_per_pick_ = 0;
  std::vector<Expected> expected_;
};

}  // namespace millrace
