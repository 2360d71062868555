// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/fleet/fleet.h"
#include "common/sample/neighbor_source.h"
#include "server/peers/hop_context.h"
#include "server/peers/peer_call.h"

namespace millrace {

namespace v1 {
class ExpandReply;
class ExpandRequest;
class ExpandRequest_Frontier;
}  // namespace v1

// The nodes of one frontier that one partition owns, and their picks.
struct OwnedFrontier {
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;  // only for disjoint jobs
  std::vector<int64_t> times;   // only for temporal jobs
  Picks picks;
};

// The node sets of a hop's frontiers (Frontier::among), and their wire form,
// which all requests of the hop share.
using WireSets = std::map<const NodeSet*, std::string>;
WireSets MakeWireSets(const HopContext& hop);

// Asks the owner of another partition about one hop. Usually that is one Expand
// call; more are needed if the frontier or the answer is too large for one
// message, or if a replica fails. Start() does not wait for the answer;
// Finish() does.
// Not thread-safe.
class PeerExpand {
 public:
  // `sets` are those of the hop, and `owned[i]` belongs to hop.frontiers[i].
  // The arguments must outlive this object.
  PeerExpand(const HopContext& hop, const WireSets& sets, int partition,
             std::vector<OwnedFrontier>& owned);

  // Sends the first request. Waits for a server of the partition, at most
  // ServerOptions::peer_wait and no longer than the client does.
  absl::Status Start();
  // Fills owned[i].picks, within the budget of the hop. Errors from the owner
  // name the partition and the server.
  absl::Status Finish();

  int partition() const { return partition_; }
  // The server that answered last; empty before Finish().
  std::string answered_by() const { return call_.answered_by(); }

 private:
  // The part of a frontier that one request asks about.
  struct Piece {
    size_t frontier;
    size_t nodes;
  };

  absl::Status Send();
  absl::Status CheckSize(size_t bytes) const;
  void FillDraw(v1::ExpandRequest& request) const;
  void FillFrontiers(v1::ExpandRequest& request);
  // Returns the set of a frontier with DrawRule::kAmong; null for others.
  const std::string* AmongOf(size_t f) const;
  void AppendExcluded(size_t f, const OwnedFrontier& owned, size_t first,
                      size_t count, v1::ExpandRequest_Frontier& out) const;
  absl::Status TakeReply(const v1::ExpandReply& reply);
  void SkipEmpty();

  const HopContext& hop_;
  const WireSets& sets_;
  const int partition_;
  std::vector<OwnedFrontier>& owned_;

  // The first node without an answer.
  size_t frontier_ = 0;
  size_t node_ = 0;

  std::vector<Piece> pieces_;  // in the current request, if any
  PeerCall call_;
};

}  // namespace millrace
