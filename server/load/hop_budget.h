// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/sample/neighbor_source.h"
#include "server/load/admission.h"

namespace millrace {

// Reserves memory for the hops of one Sample call: before each hop what can be
// foreseen, and during it what the answers of other servers turn out to need.
// Functions that return a status fail like Reservation::GrowTo().
// Not thread-safe. All references must outlive it.
class HopBudget {
 public:
  // `held`: bytes that the call needs apart from its hops.
  HopBudget(const Store& store, Admission::Reservation& reservation,
            uint64_t held)
      : store_(store), reservation_(reservation), bytes_(held) {}

  // Call before allocating anything for a hop.
  absl::Status StartHop(const DrawContext& draw,
                        std::span<const Frontier> frontiers);

  // Call before asking another server for nodes of the frontiers marked in
  // `asked`: a reply occupies memory before its size is known. (A single list
  // longer than kMaxExpandReplyBytes is not foreseen.)
  absl::Status ExpectReply(const std::vector<bool>& asked);

  // Call before allocating `bytes` for anything but the hops.
  absl::Status Reserve(uint64_t bytes) {
    bytes_ += bytes;
    return Grow();
  }
  // Leaves the reserved bytes to the rest of the call.
  void Release(uint64_t bytes) { bytes_ -= bytes; }

  // Leaves what was reserved for `picks` picks of an earlier hop to the rest of
  // the call.
  void ReleasePicks(const DrawContext& draw, uint64_t picks);

  // Call before copying `picks` picks of frontiers[frontier] out of a reply.
  absl::Status AddPicks(size_t frontier, uint64_t picks);

 private:
  // A frontier of the current hop.
  struct Expected {
    uint64_t room = 0;         // number of picks already reserved for
    uint64_t reply_bytes = 0;  // largest reply that is not foreseen
  };
  Expected Expect(const DrawContext& draw, const Frontier& frontier);
  absl::Status Grow() { return reservation_.GrowTo(bytes_ + reply_bytes_); }

  const Store& store_;
  Admission::Reservation& reservation_;
  uint64_t bytes_;            // `held`, and all hops so far
  uint64_t reply_bytes_ = 0;  // bytes of the replies in flight in this hop
  uint64_t bytes_per_pick_ = 0;
  std::vector<Expected> expected_;
};

}  // namespace millrace
