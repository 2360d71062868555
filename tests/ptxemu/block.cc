// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/block.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "tests/ptxemu/settings.h"
#include "tests/ptxemu/warp_operation.h"

namespace millrace::ptxemu {
namespace {

constexpr uint8_t kFreshSharedByte = 0xCD;
constexpr uint64_t kFreshRegister = 0xCDCDCDCDCDCDCDCD;
constexpr size_t kSharedAlignment = 128;
constexpr size_t kMaxDescribedThreads = 8;

Extent PlaceIn(uint64_t number, const Extent& whole) {
  return {static_cast<uint32_t>(number % whole.x),
          static_cast<uint32_t>(number / whole.x % whole.y),
          static_cast<uint32_t>(number / whole.x / whole.y)};
}

// The memory of threads that have exited, which others use again while it is
// still in the caches. The runtime's lock guards it.
std::vector<ThreadMemory>& SpareMemory() {
  static auto* const spare = new std::vector<ThreadMemory>;
  return *spare;
}

}  // namespace

Block::Block(const Launch& launch, uint64_t number, uint64_t last_instruction,
             std::mt19937_64* random)
    : launch_(launch),
      kernel_(*launch.kernel),
      number_(number),
      last_instruction_(last_instruction),
      random_(*random),
      place_(PlaceIn(number, launch.grid)),
      grain_(GetSettings().grain.value_or(static_cast<int>(random_() % 3))),
      dynamic_shared_(RoundUp(kernel_.shared_bytes, kSharedAlignment)),
      shared_(dynamic_shared_ + launch.dynamic_shared_bytes, kFreshSharedByte),
      unfinished_(static_cast<uint32_t>(launch.block.Count())) {
  for (const uint64_t mask : kernel_.register_masks) {
    fresh_registers_.push_back(kFreshRegister & mask);
  }
  threads_.reserve(unfinished_);
  for (uint32_t index = 0; index < unfinished_; ++index) {
    threads_.push_back({.place = PlaceIn(index, launch.block),
                        .index = index,
                        .lane = index % kWarpSize,
                        .warp = index / kWarpSize});
  }
}

void Block::Start(Thread* thread) const {
  std::vector<ThreadMemory>& spare = SpareMemory();
  if (!spare.empty()) {
    thread->memory = std::move(spare.back());
    spare.pop_back();
  }
  thread->memory.frames.resize(1);
  Frame& frame = thread->frame();
  frame.function = &kernel_;
  frame.next = 0;
  frame.parameters = launch_.parameters;
  frame.call_parameters.assign(kernel_.call_bytes, 0);
  thread->memory.registers = fresh_registers_;
  thread->FindFrameRegisters();
  thread->memory.local.assign(kernel_.local_bytes, kFreshSharedByte);
  thread->state = Thread::State::kReady;
}

void Block::Exit(Thread* thread) {
  SpareMemory().push_back(std::move(thread->memory));
  thread->state = Thread::State::kExited;
  --unfinished_;
  ReleaseBarriers();
}

int Block::DrawQuantum() {
  const uint64_t draw = random_();
  switch (grain_) {
    case 0:
      return 1 + static_cast<int>(draw % 3);
    case 1:
      return 1 + static_cast<int>(draw % 60);
    default:
      return draw % 4 == 0 ? 1 + static_cast<int>(draw % 500) : 100'000;
  }
}

absl::Status Block::RunRound() {
  ready_.clear();
  for (const Thread& thread : threads_) {
    if (thread.CanRun()) ready_.push_back(thread.index);
  }
  if (ready_.empty()) return DescribeDeadlock();
  std::shuffle(ready_.begin(), ready_.end(), random_);
  for (const uint32_t index : ready_) {
    Thread& thread = threads_[index];
    if (thread.state == Thread::State::kNew) Start(&thread);
    const absl::Status status = RunThread(&thread, DrawQuantum());
    if (!status.ok()) return AddPlace(status, thread);
  }
  return absl::OkStatus();
}

absl::Status Block::DescribeDeadlock() const {
  std::string text =
      absl::StrCat("deadlock in a block of the kernel ", kernel_.name, ":");
  size_t described = 0;
  for (const Thread& thread : threads_) {
    if (thread.state == Thread::State::kExited) continue;
    if (++described > kMaxDescribedThreads) break;
    absl::StrAppend(&text, " thread ", thread.index);
    if (thread.state == Thread::State::kAtBarrier) {
      absl::StrAppend(&text, " at barrier ", thread.barrier);
    } else {
      absl::StrAppendFormat(&text, " at a warp operation of mask %#x",
                            thread.member_mask);
    }
    absl::StrAppend(&text, ", PTX line ", thread.instruction().line, ";");
  }
  return absl::InternalError(text);
}

absl::Status Block::AddPlace(const absl::Status& fault,
                             const Thread& thread) const {
  const Function& function = *thread.frame().function;
  return absl::InternalError(absl::StrFormat(
      "%s\n  in %s of kernel %s, PTX line %d, block (%d,%d,%d), thread %d",
      std::string(fault.message()), function.name, kernel_.name,
      thread.instruction().line, place_.x, place_.y, place_.z, thread.index));
}

void Block::EnterBarrier(Thread* thread, const Instruction& in) {
  thread->barrier =
      static_cast<int>(Value(*thread, in.sources[0])) & (kBarriers - 1);
  thread->barrier_threads =
      in.sources[1].kind == Operand::Kind::kNone
          ? -1
          : static_cast<int>(Value(*thread, in.sources[1]));
  thread->state = Thread::State::kAtBarrier;
  ++waiting_[thread->barrier];
  expected_[thread->barrier] = thread->barrier_threads;
  ReleaseBarriers();
}

void Block::ReleaseBarriers() {
  for (int barrier = 0; barrier < kBarriers; ++barrier) {
    if (waiting_[barrier] == 0) continue;
    const uint32_t needed = expected_[barrier] < 0
                                ? unfinished_
                                : static_cast<uint32_t>(expected_[barrier]);
    if (waiting_[barrier] == needed) ReleaseBarrier(barrier);
  }
}

void Block::ReleaseBarrier(int barrier) {
  waiting_[barrier] = 0;
  std::vector<Thread*> members;
  for (Thread& thread : threads_) {
    if (thread.state == Thread::State::kAtBarrier &&
        thread.barrier == barrier) {
      members.push_back(&thread);
    }
  }
  uint64_t count = 0;
  for (const Thread* member : members) {
    const Instruction& in = member->instruction();
    if (in.opcode != Opcode::kBarrierReduce) continue;
    count += Value(*member, in.sources[2]) != 0 ? 1 : 0;
  }
  for (Thread* member : members) {
    const Instruction& in = member->instruction();
    uint64_t result = count;
    if (in.barrier_reduction == BarrierReduction::kAnd) {
      result = count == members.size();
    }
    if (in.barrier_reduction == BarrierReduction::kOr) result = count > 0;
    if (in.opcode == Opcode::kBarrierReduce) member->Write(in.result, result);
    member->state = Thread::State::kReady;
    ++member->frame().next;
  }
}

const Thread* Block::LaneOf(const Thread& thread, uint32_t lane) const {
  const size_t index = thread.warp * kWarpSize + lane;
  return index < threads_.size() ? &threads_[index] : nullptr;
}

Thread* Block::LaneOf(const Thread& thread, uint32_t lane) {
  const size_t index = thread.warp * kWarpSize + lane;
  return index < threads_.size() ? &threads_[index] : nullptr;
}

absl::Status Block::EnterWarpOperation(Thread* thread, const Instruction& in) {
  thread->member_mask = static_cast<uint32_t>(Value(*thread, in.member_mask));
  thread->state = Thread::State::kAtWarpOperation;
  if ((thread->member_mask >> thread->lane & 1) == 0) {
    return absl::InternalError(absl::StrFormat(
        "a warp operation whose mask %#x does not have the lane itself, %d",
        thread->member_mask, thread->lane));
  }
  MILLRACE_ASSIGN_OR_RETURN(const bool complete, HaveAllArrived(*thread, in));
  if (complete) CompleteWarpOperation(*thread, in);
  return absl::OkStatus();
}

// Lanes beyond the end of the block count as arrived.
absl::StatusOr<bool> Block::HaveAllArrived(const Thread& thread,
                                           const Instruction& in) const {
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const Thread* const other = LaneOf(thread, lane);
    if ((thread.member_mask >> lane & 1) == 0 || other == nullptr) continue;
    if (other->state == Thread::State::kExited) {
      if (in.opcode == Opcode::kWarpSync) continue;
      return absl::InternalError(absl::StrCat("a warp operation names lane ",
                                              lane, ", which has exited"));
    }
    if (other->state != Thread::State::kAtWarpOperation ||
        &other->instruction() != &in ||
        other->member_mask != thread.member_mask) {
      return false;
    }
  }
  return true;
}

void Block::CompleteWarpOperation(const Thread& thread, const Instruction& in) {
  const uint32_t mask = thread.member_mask;
  WarpLane lanes[kWarpSize];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    Thread* const member = LaneOf(thread, lane);
    if ((mask >> lane & 1) == 0 || member == nullptr ||
        member->state == Thread::State::kExited) {
      continue;
    }
    lanes[lane] = {.is_member = true, .sources = SourcesOf(member, in)};
  }
  ComputeWarpOperation(in, mask, lanes, &random_);
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if (!lanes[lane].is_member) continue;
    Thread* const member = LaneOf(thread, lane);
    if (in.opcode != Opcode::kWarpSync) {
      member->Write(in.result, lanes[lane].result);
      member->Write(in.second_result, lanes[lane].predicate);
    }
    member->state = Thread::State::kReady;
    ++member->frame().next;
  }
}

}  // namespace millrace::ptxemu
