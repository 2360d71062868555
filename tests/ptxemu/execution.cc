// SPDX-License-Identifier: Apache-2.0
// How a block's threads execute instructions.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "tests/ptxemu/atomic_operation.h"
#include "tests/ptxemu/block.h"
#include "tests/ptxemu/memory.h"
#include "tests/ptxemu/module.h"
#include "tests/ptxemu/operations.h"
#include "tests/ptxemu/values.h"

namespace millrace::ptxemu {
namespace {

constexpr size_t kMaxFrames = 200;
constexpr size_t kLocalAlignment = 16;
constexpr uint64_t kMultiprocessors = 4;

uint64_t TagOf(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedTag;
    case Space::kLocal:
      return kLocalTag;
    case Space::kParam:
      return kParamTag;
    default:
      return 0;
  }
}

Space SpaceOfTag(uint64_t address) {
  switch (address & kTagMask) {
    case kSharedTag:
      return Space::kShared;
    case kLocalTag:
      return Space::kLocal;
    case kParamTag:
      return Space::kParam;
    default:
      return Space::kGlobal;
  }
}

// Where the bytes from `offset` on are in `memory`.
absl::StatusOr<uint8_t*> ResolveIn(std::vector<uint8_t>* memory,
                                   uint64_t offset, size_t bytes,
                                   const char* what) {
  if (offset + bytes > memory->size()) {
    return absl::InternalError(absl::StrCat("access of ", bytes, " bytes at ",
                                            offset, " of ", memory->size(),
                                            " bytes of ", what, " memory"));
  }
  return memory->data() + offset;
}

// The part of the param space that an address refers to.
std::vector<uint8_t>* ParametersAt(Frame* frame, uint64_t address) {
  return (address & kCallParamBit) != 0 ? &frame->call_parameters
                                        : &frame->parameters;
}

uint64_t ReadValue(const uint8_t* from, ValueType type) {
  uint64_t value = 0;
  std::memcpy(&value, from, type.bytes);
  if (!type.IsSigned()) return value;
  return static_cast<uint64_t>(SignExtend(value, type.bytes));
}

// The width of each element of a vector that is split or joined.
int ElementBits(const Instruction& in) {
  return in.type.bits() / static_cast<int>(in.vector.size());
}

}  // namespace

uint64_t Block::SpecialValue(const Thread& thread, SpecialRegister name) const {
  const uint32_t own = 1u << thread.lane;
  switch (name) {
    case SpecialRegister::kThreadX:
      return thread.place.x;
    case SpecialRegister::kThreadY:
      return thread.place.y;
    case SpecialRegister::kThreadZ:
      return thread.place.z;
    case SpecialRegister::kBlockSizeX:
      return launch_.block.x;
    case SpecialRegister::kBlockSizeY:
      return launch_.block.y;
    case SpecialRegister::kBlockSizeZ:
      return launch_.block.z;
    case SpecialRegister::kBlockX:
      return place_.x;
    case SpecialRegister::kBlockY:
      return place_.y;
    case SpecialRegister::kBlockZ:
      return place_.z;
    case SpecialRegister::kGridSizeX:
      return launch_.grid.x;
    case SpecialRegister::kGridSizeY:
      return launch_.grid.y;
    case SpecialRegister::kGridSizeZ:
      return launch_.grid.z;
    case SpecialRegister::kLane:
      return thread.lane;
    case SpecialRegister::kWarp:
      return thread.warp;
    case SpecialRegister::kWarpCount:
      return threads_.back().warp + 1;
    case SpecialRegister::kLaneMaskEqual:
      return own;
    case SpecialRegister::kLaneMaskLess:
      return own - 1;
    case SpecialRegister::kLaneMaskLessEqual:
      return own | (own - 1);
    case SpecialRegister::kLaneMaskGreater:
      return ~(own | (own - 1));
    case SpecialRegister::kLaneMaskGreaterEqual:
      return ~(own - 1);
    case SpecialRegister::kClock:
      return launch_statistics.instructions;
    case SpecialRegister::kMultiprocessor:
      return number_ % kMultiprocessors;
    case SpecialRegister::kMultiprocessorCount:
      return kMultiprocessors;
    case SpecialRegister::kDynamicSharedBytes:
      return launch_.dynamic_shared_bytes;
    case SpecialRegister::kSharedBytes:
      return shared_.size();
    case SpecialRegister::kZero:
      return 0;
  }
  return 0;
}

uint64_t Block::UnusualValue(const Thread& thread,
                             const Operand& operand) const {
  uint64_t value = 0;
  switch (operand.kind) {
    case Operand::Kind::kNone:
    case Operand::Kind::kImmediate:
      return operand.value;
    case Operand::Kind::kRegister:
      value = thread.frame_registers[operand.register_index];
      break;
    case Operand::Kind::kSpecial:
      value = SpecialValue(thread, operand.special);
      break;
    case Operand::Kind::kDynamicShared:
      value = dynamic_shared_ + operand.value;
      break;
    case Operand::Kind::kLocal:
      value = thread.frame().first_local + operand.value;
      break;
  }
  return operand.is_negated ? !value : value;
}

Space Block::SpaceOf(const Thread& thread, const Instruction& in) const {
  const uint64_t address = Value(thread, in.address);
  if ((address & kTagMask) == kParamTag) return Space::kParam;
  return in.space == Space::kGeneric ? SpaceOfTag(address) : in.space;
}

absl::StatusOr<uint8_t*> Block::Resolve(Thread* thread, const Instruction& in,
                                        size_t bytes) {
  const uint64_t address =
      Value(*thread, in.address) + static_cast<uint64_t>(in.address_offset);
  const Space space = SpaceOf(*thread, in);
  const uint64_t offset = address & ~kTagMask;
  if (space == Space::kParam) {
    return ResolveIn(ParametersAt(&thread->frame(), offset),
                     offset & kParamOffsetMask, bytes, "parameter");
  }
  if (address % std::min<size_t>(bytes, 16) != 0) {
    return absl::InternalError(absl::StrCat("misaligned address: access of ",
                                            bytes, " bytes at ",
                                            absl::Hex(address)));
  }
  if (space == Space::kShared) {
    return ResolveIn(&shared_, offset, bytes, "shared");
  }
  if (space == Space::kLocal) {
    return ResolveIn(&thread->memory.local, offset, bytes, "local");
  }
  return Memory::Get().Resolve(address, bytes, in.line);
}

absl::Status Block::RunThread(Thread* thread, int quantum) {
  const Instruction* next = &thread->instruction();
  for (int executed = 0; executed < quantum; ++executed) {
    if (++launch_statistics.instructions > last_instruction_) {
      thread->SetInstruction(next);
      return absl::InternalError(
          "the launch does not end (PTXEMU_MAX_INSTRUCTIONS)");
    }
    const Instruction& in = *next;
    const bool is_skipped =
        in.guard >= 0 &&
        (thread->frame_registers[in.guard] != 0) == in.is_guard_negated;
    if (is_skipped) {
      ++next;
      continue;
    }
    // Most instructions neither fail nor wait.
    switch (in.opcode) {
      case Opcode::kCompute:
        thread->Write(in.result, in.compute(in, SourcesOf(thread, in)));
        ++next;
        continue;
      case Opcode::kMove:
        thread->Write(in.result, Value(*thread, in.sources[0]));
        ++next;
        continue;
      case Opcode::kSetPredicate:
        SetPredicate(thread, in);
        ++next;
        continue;
      case Opcode::kBranch:
        next = &thread->frame().function->code[in.target];
        continue;
      default:
        break;
    }
    thread->SetInstruction(next);
    MILLRACE_RETURN_IF_ERROR(Execute(thread, in));
    if (in.opcode == Opcode::kSleep || thread->state != Thread::State::kReady) {
      return absl::OkStatus();
    }
    next = &thread->instruction();
  }
  thread->SetInstruction(next);
  return absl::OkStatus();
}

absl::Status Block::Execute(Thread* thread, const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kSplit:
    case Opcode::kJoin:
      SplitOrJoin(thread, in);
      break;
    case Opcode::kLoad:
      MILLRACE_RETURN_IF_ERROR(Load(thread, in));
      break;
    case Opcode::kStore:
      MILLRACE_RETURN_IF_ERROR(Store(thread, in));
      break;
    case Opcode::kAtomic:
      MILLRACE_RETURN_IF_ERROR(ExecuteAtomic(thread, in));
      break;
    case Opcode::kConvertAddress:
    case Opcode::kIsSpace:
      ConvertAddress(thread, in);
      break;
    case Opcode::kActiveMask:
      thread->Write(in.result, 1u << thread->lane);
      break;
    case Opcode::kSleep:
    case Opcode::kNothing:
      break;
    default:
      return ExecuteControl(thread, in);
  }
  ++thread->frame().next;
  return absl::OkStatus();
}

// These instructions decide themselves what is executed next.
absl::Status Block::ExecuteControl(Thread* thread, const Instruction& in) {
  switch (in.opcode) {
    case Opcode::kBranchIndexed: {
      const uint64_t index = Value(*thread, in.sources[0]);
      if (index >= in.targets.size()) {
        return absl::InternalError("a branch beyond its table");
      }
      thread->frame().next = in.targets[index];
      return absl::OkStatus();
    }
    case Opcode::kCall:
      return Call(thread, in);
    case Opcode::kReturn:
      Return(thread);
      return absl::OkStatus();
    case Opcode::kExit:
      Exit(thread);
      return absl::OkStatus();
    case Opcode::kTrap:
      return absl::InternalError("trap");
    case Opcode::kBarrier:
    case Opcode::kBarrierReduce:
      EnterBarrier(thread, in);
      return absl::OkStatus();
    default:
      return EnterWarpOperation(thread, in);
  }
}

void Block::SplitOrJoin(Thread* thread, const Instruction& in) const {
  const int bits = ElementBits(in);
  if (in.opcode == Opcode::kSplit) {
    const uint64_t value = Value(*thread, in.sources[0]);
    for (size_t i = 0; i < in.vector.size(); ++i) {
      thread->Write(in.vector[i], value >> bits * i);
    }
    return;
  }
  uint64_t joined = 0;
  for (size_t i = 0; i < in.vector.size(); ++i) {
    joined |= Truncate(Value(*thread, in.vector[i]), bits / 8) << bits * i;
  }
  thread->Write(in.result, joined);
}

void Block::SetPredicate(Thread* thread, const Instruction& in) const {
  const Sources sources = SourcesOf(thread, in);
  const bool holds = Compare(in, sources);
  const bool other = (sources.c & 1) != 0;
  const auto combine = [&](bool value) {
    switch (in.combination) {
      case Combination::kAnd:
        return value && other;
      case Combination::kOr:
        return value || other;
      case Combination::kXor:
        return value != other;
      default:
        return value;
    }
  };
  thread->Write(in.result, combine(holds));
  thread->Write(in.second_result, combine(!holds));
}

absl::Status Block::Load(Thread* thread, const Instruction& in) {
  const size_t bytes = in.type.bytes;
  MILLRACE_ASSIGN_OR_RETURN(const uint8_t* from,
                            Resolve(thread, in, bytes * in.vector.size()));
  for (size_t i = 0; i < in.vector.size(); ++i) {
    thread->Write(in.vector[i], ReadValue(from + i * bytes, in.type));
  }
  return absl::OkStatus();
}

absl::Status Block::Store(Thread* thread, const Instruction& in) {
  const size_t bytes = in.type.bytes;
  MILLRACE_ASSIGN_OR_RETURN(uint8_t * to,
                            Resolve(thread, in, bytes * in.vector.size()));
  for (size_t i = 0; i < in.vector.size(); ++i) {
    const uint64_t value = Value(*thread, in.vector[i]);
    std::memcpy(to + i * bytes, &value, bytes);
  }
  return absl::OkStatus();
}

absl::Status Block::ExecuteAtomic(Thread* thread, const Instruction& in) {
  MILLRACE_ASSIGN_OR_RETURN(uint8_t * at, Resolve(thread, in, in.type.bytes));
  uint64_t old = 0;
  std::memcpy(&old, at, in.type.bytes);
  const bool is_shared = SpaceOf(*thread, in) == Space::kShared;
  const uint64_t updated =
      UpdateAtomically(in, old, SourcesOf(thread, in), is_shared);
  std::memcpy(at, &updated, in.type.bytes);
  thread->Write(in.result, old);
  return absl::OkStatus();
}

void Block::ConvertAddress(Thread* thread, const Instruction& in) const {
  const uint64_t address = Value(*thread, in.sources[0]);
  const uint64_t tag = TagOf(in.space);
  if (in.opcode == Opcode::kIsSpace) {
    thread->Write(in.result, (address & kTagMask) == tag);
  } else if (in.to_generic) {
    thread->Write(in.result, address | tag);
  } else {
    thread->Write(in.result, tag == 0 ? address : address & ~kTagMask);
  }
}

absl::Status Block::Call(Thread* thread, const Instruction& in) const {
  CallTarget& call = *in.call;
  if (call.name == "__assertfail") {
    return absl::InternalError("a device assertion failed");
  }
  if (call.name == "vprintf") {
    ++thread->frame().next;
    return absl::OkStatus();
  }
  if (call.function == nullptr) {
    call.function = kernel_.module->FindFunction(call.name);
  }
  const Function* const callee = call.function;
  if (callee == nullptr) {
    return absl::InternalError(
        absl::StrCat("a call of the unknown function ", call.name));
  }
  if (thread->memory.frames.size() > kMaxFrames) {
    return absl::InternalError("stack overflow");
  }
  Frame frame{
      .function = callee,
      .first_register = static_cast<uint32_t>(thread->memory.registers.size()),
      .first_local = static_cast<uint32_t>(thread->memory.local.size()),
      .parameters = std::vector<uint8_t>(callee->parameter_bytes),
      .call_parameters = std::vector<uint8_t>(callee->call_bytes)};
  Frame& caller = thread->frame();
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Parameter& parameter = callee->parameters[i];
    const uint64_t address =
        caller.function->symbols.at(call.arguments[i]).address;
    std::memcpy(
        frame.parameters.data() + parameter.offset,
        ParametersAt(&caller, address)->data() + (address & kParamOffsetMask),
        parameter.bytes);
  }
  thread->memory.registers.resize(thread->memory.registers.size() +
                                  callee->register_masks.size());
  thread->memory.local.resize(thread->memory.local.size() +
                              RoundUp(callee->local_bytes, kLocalAlignment));
  thread->memory.frames.push_back(std::move(frame));
  thread->FindFrameRegisters();
  return absl::OkStatus();
}

void Block::Return(Thread* thread) {
  if (thread->memory.frames.size() == 1) return Exit(thread);
  const Frame callee = std::move(thread->memory.frames.back());
  thread->memory.frames.pop_back();
  thread->memory.registers.resize(callee.first_register);
  thread->memory.local.resize(callee.first_local);
  thread->FindFrameRegisters();
  Frame& caller = thread->frame();
  const CallTarget& call = *thread->instruction().call;
  for (size_t i = 0; i < call.results.size(); ++i) {
    const Parameter& result = callee.function->results[i];
    const uint64_t address =
        caller.function->symbols.at(call.results[i]).address;
    std::memcpy(caller.call_parameters.data() + (address & kParamOffsetMask),
                callee.parameters.data() + result.offset, result.bytes);
  }
  ++caller.next;
}

}  // namespace millrace::ptxemu
