// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/warp_operation.h"

#include <algorithm>

#include "tests/ptxemu/values.h"

namespace millrace::ptxemu {
namespace {

using Lanes = WarpLane (&)[kWarpSize];

// The members for which `condition(lane)` holds.
template <typename F>
uint32_t MembersWhere(Lanes lanes, F condition) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if (lanes[i].is_member && condition(lanes[i])) mask |= 1u << i;
  }
  return mask;
}

struct ShuffleSource {
  int lane;
  bool is_in_range;
};

// The lane that `lane` reads, as PTX defines it by the operands b and c.
ShuffleSource FindShuffleSource(const Instruction& in, int lane,
                                const Sources& s) {
  const int offset = static_cast<int>(s.b) & 31;
  const int clamp = static_cast<int>(s.c) & 31;
  const int segment = static_cast<int>(s.c) >> 8 & 31;
  const int last = (lane & segment) | (clamp & ~segment);
  const int first = lane & segment;
  switch (in.shuffle) {
    case ShuffleKind::kUp:
      return {lane - offset, lane - offset >= last};
    case ShuffleKind::kDown:
      return {lane + offset, lane + offset <= last};
    case ShuffleKind::kButterfly:
      return {lane ^ offset, (lane ^ offset) <= last};
    default: {
      const int source = first | (offset & ~segment);
      return {source, source <= last};
    }
  }
}

void Shuffle(const Instruction& in, Lanes lanes, std::mt19937_64* random) {
  for (int i = 0; i < static_cast<int>(kWarpSize); ++i) {
    WarpLane& lane = lanes[i];
    if (!lane.is_member) continue;
    auto [source, is_in_range] = FindShuffleSource(in, i, lane.sources);
    if (!is_in_range) source = i;
    lane.predicate = is_in_range;
    lane.result =
        lanes[source].is_member ? lanes[source].sources.a : (*random)();
  }
}

void Vote(const Instruction& in, Lanes lanes) {
  const uint32_t members =
      MembersWhere(lanes, [](const WarpLane&) { return true; });
  const uint32_t votes = MembersWhere(
      lanes, [](const WarpLane& lane) { return lane.sources.a != 0; });
  uint64_t result = votes;
  if (in.vote == VoteKind::kAny) result = votes != 0;
  if (in.vote == VoteKind::kAll) result = votes == members;
  if (in.vote == VoteKind::kUniform) {
    result = votes == 0 || votes == members;
  }
  for (WarpLane& lane : lanes) lane.result = result;
}

void Match(const Instruction& in, uint32_t mask, Lanes lanes) {
  const int bytes = in.type.bytes;
  const uint32_t members =
      MembersWhere(lanes, [](const WarpLane&) { return true; });
  for (WarpLane& lane : lanes) {
    const uint32_t equal = MembersWhere(lanes, [&](const WarpLane& other) {
      return Truncate(other.sources.a, bytes) ==
             Truncate(lane.sources.a, bytes);
    });
    lane.predicate = equal == members;
    lane.result = equal;
    if (in.is_match_all) lane.result = lane.predicate ? mask : 0;
  }
}

uint64_t Reduce(const Instruction& in, uint64_t a, uint64_t b) {
  const bool is_less = in.type.IsSigned() ? SignExtend(a, 4) < SignExtend(b, 4)
                                          : Truncate(a, 4) < Truncate(b, 4);
  switch (in.reduce) {
    case ReduceOperation::kAdd:
      return a + b;
    case ReduceOperation::kMin:
      return is_less ? a : b;
    case ReduceOperation::kMax:
      return is_less ? b : a;
    case ReduceOperation::kAnd:
      return a & b;
    case ReduceOperation::kOr:
      return a | b;
    default:
      return a ^ b;
  }
}

void ReduceAll(const Instruction& in, Lanes lanes) {
  bool is_first = true;
  uint64_t total = 0;
  for (const WarpLane& lane : lanes) {
    if (!lane.is_member) continue;
    total = is_first ? lane.sources.a : Reduce(in, total, lane.sources.a);
    is_first = false;
  }
  for (WarpLane& lane : lanes) lane.result = total;
}

}  // namespace

void ComputeWarpOperation(const Instruction& in, uint32_t mask, Lanes lanes,
                          std::mt19937_64* random) {
  switch (in.opcode) {
    case Opcode::kShuffle:
      return Shuffle(in, lanes, random);
    case Opcode::kVote:
      return Vote(in, lanes);
    case Opcode::kMatch:
      return Match(in, mask, lanes);
    case Opcode::kWarpReduce:
      return ReduceAll(in, lanes);
    default:  // kWarpSync has no result
      return;
  }
}

}  // namespace millrace::ptxemu
