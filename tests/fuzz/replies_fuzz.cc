// SPDX-License-Identifier: Apache-2.0
// All replies of servers except batches: Expand, Resolve, HasEdges and Gather,
// as read by home servers and clients. Input: which reply, what was asked for
// (one byte), then the reply; for Gather length-prefixed messages.
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "client/remote/row_scatter.h"
#include "common/base/check.h"
#include "common/sample/neighbor_source.h"
#include "common/wire/frame.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"
#include "server/peers/expand_reply_reader.h"
#include "tests/fuzz/support/graph.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

template <typename Reply>
bool Parse(Input& input, Reply& reply) {
  const std::string_view bytes = input.Rest();
  return reply.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void ReadExpand(uint8_t asked, Input input) {
  v1::ExpandReply reply;
  if (!Parse(input, reply)) return;
  const Schema& schema = RichStore()->schema();
  DrawContext draw;
  draw.direction = (asked & 1) != 0 ? Direction::kOut : Direction::kIn;
  draw.edge_ids = (asked & 2) != 0;
  draw.feature_rows = (asked & 4) != 0;
  Frontier frontier;
  frontier.relation = static_cast<RelationIndex>(asked >> 3) %
                      static_cast<RelationIndex>(schema.relations.size());
  frontier.fanout = (asked & 128) != 0 ? -1 : 2;
  Picks picks;
  for (const v1::ExpandReply::Picks& in : reply.picks()) {
    const size_t before = picks.counts.size();
    const auto answered = AppendPicks(in, schema, draw, frontier, picks);
    if (!answered.ok()) break;
    MILLRACE_CHECK(picks.counts.size() == before + *answered);
  }
  const size_t total =
      std::accumulate(picks.counts.begin(), picks.counts.end(), size_t{0});
  MILLRACE_CHECK(picks.neighbors.size() == total);
  const Relation& relation = schema.relations[frontier.relation];
  const NodeType& type =
      schema.node_types[NeighborType(relation, draw.direction)];
  for (const uint64_t neighbor : picks.neighbors) {
    MILLRACE_CHECK(neighbor < static_cast<uint64_t>(type.count));
  }
}

void ReadResolve(uint8_t asked, Input input) {
  v1::ResolveReply reply;
  if (!Parse(input, reply)) return;
  const std::vector<NodeType>& types = RichStore()->schema().node_types;
  const NodeType& type = types[asked % types.size()];
  const auto ids = ReadIds(reply.ids(), type.id_dtype(), 0,
                           static_cast<uint64_t>(type.count), "ids");
  if (!ids.ok()) return;
  for (const uint64_t id : *ids) {
    MILLRACE_CHECK(id < static_cast<uint64_t>(type.count));
  }
}

void ReadHasEdges(Input input) {
  v1::HasEdgesReply reply;
  if (!Parse(input, reply)) return;
  const auto found = ReadRaw<uint8_t>(reply.found(), "found");
  if (found.ok()) Touch(found->data(), found->size());
}

// As client/remote/row_call.cc does, for `asked` rows of 4 floats.
void ReadGather(uint8_t asked, Input input) {
  std::vector<uint32_t> rows(asked);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<uint32_t>(rows.size() - 1 - i);
  }
  const Array target = Array::Allocate(DType::kFloat32, {asked, 4});
  RowScatter scatter(rows, target);
  while (!input.empty()) {
    const auto bytes = std::as_bytes(std::span(input.Piece()));
    const size_t cut = bytes.size() / 3;
    const std::vector<std::span<const std::byte>> slices = {
        bytes.first(cut), {}, bytes.subspan(cut)};
    const absl::StatusOr<FrameView> frame = ParseFrame(slices);
    if (!frame.ok() || !scatter.Take(frame->header, frame->payload).ok()) break;
  }
  if (scatter.CheckComplete().ok()) Touch(target);
}

void Run(Input input) {
  const uint8_t which = input.Byte();
  const uint8_t asked = input.Byte();
  switch (which % 4) {
    case 0:
      return ReadExpand(asked, input);
    case 1:
      return ReadResolve(asked, input);
    case 2:
      return ReadHasEdges(input);
    default:
      return ReadGather(asked, input);
  }
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run({data, size});
  return 0;
}
