// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/fleet.h"
#include "common/sample/neighbor_source.h"
#include "server/hop_context.h"
#include "server/peer_call.h"

namespace millrace {

namespace v1 {
class ExpandReply;
class ExpandRequest;
class ExpandRequest_Frontier;
}  // namespace v1

// The nodes of one hop that one partition owns, by frontier, and what was
// drawn for them.
struct OwnedFrontier {
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;  // disjoint jobs only
  std::vector<int64_t> times;   // temporal jobs only
  Picks picks;
};

// One hop's conversation with the owner of another partition: as a rule one
// Expand; more when the frontier or the answer is too large for one message,
// or when a replica fails.
// Threads: one; Start() does not wait for the answer, Finish() does.
class OwnerExpand {
 public:
  // `owned[i]` belongs to hop.frontiers[i]. All must outlive this object.
  OwnerExpand(const HopContext& hop, int partition,
              std::vector<OwnedFrontier>& owned);

  // Waits for a server of the partition, for ServerOptions::peer_wait at most
  // and no longer than the client does.
  absl::Status Start();
  // Fills owned[i].picks, within the budget of the hop. Errors of the owner
  // name partition and server.
  absl::Status Finish();

 private:
  // What one request asks for of a frontier.
  struct Piece {
    size_t frontier;
    size_t nodes;
  };

  absl::Status Send();
  absl::Status CheckSize(size_t bytes) const;
  void FillRequest(v1::ExpandRequest& request);
  std::string AmongOf(size_t f) const;
  void AppendExcluded(size_t f, const OwnedFrontier& owned, size_t first,
                      size_t count, v1::ExpandRequest_Frontier& out) const;
  absl::Status TakeReply(const v1::ExpandReply& reply);
  void SkipEmpty();

  const HopContext& hop_;
  const int partition_;
  std::vector<OwnedFrontier>& owned_;

  // The first node that is not answered yet.
  size_t frontier_ = 0;
  size_t node_ = 0;

  std::vector<Piece> pieces_;  // of the request in flight, if any
  PeerCall call_;
};

}  // namespace millrace
