// SPDX-License-Identifier: Apache-2.0
// A thread of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/ptxemu/instruction.h"
#include "tests/ptxemu/launch.h"

namespace millrace::ptxemu {

// A call of a function that has not returned yet.
struct Frame {
  const Function* function;
  int next = 0;                 // the instruction that is executed next
  uint32_t first_register = 0;  // in ThreadMemory::registers
  uint32_t first_local = 0;     // in ThreadMemory::local
  std::vector<uint8_t> parameters;
  std::vector<uint8_t> call_parameters;
};

struct ThreadMemory {
  std::vector<Frame> frames;
  std::vector<uint64_t> registers;  // of all frames
  std::vector<uint8_t> local;       // of all frames
};

struct Thread {
  enum class State : uint8_t {
    kNew,  // has no memory yet
    kReady,
    kAtBarrier,
    kAtWarpOperation,
    kExited,  // has no memory any longer
  };

  State state = State::kNew;
  Extent place;  // threadIdx
  uint32_t index = 0;
  uint32_t lane = 0;
  uint32_t warp = 0;
  uint32_t member_mask = 0;  // of the warp operation that it is at
  int barrier = 0;           // the barrier that it is at
  int barrier_threads = -1;  // how many that waits for; -1 for all
  bool carry = false;
  ThreadMemory memory = {};
  uint64_t* frame_registers = nullptr;  // the last frame's, in `memory`

  bool CanRun() const { return state == State::kNew || state == State::kReady; }
  Frame& frame() { return memory.frames.back(); }
  const Frame& frame() const { return memory.frames.back(); }
  const Instruction& instruction() const {
    return frame().function->code[frame().next];
  }
  // `in` must be of the last frame's function.
  void SetInstruction(const Instruction* in) {
    frame().next = static_cast<int>(in - frame().function->code.data());
  }
  // Writes to the operand, unless it is none.
  void Write(const Operand& to, uint64_t value) {
    if (to.kind != Operand::Kind::kRegister) return;
    frame_registers[to.register_index] = value & to.value;
  }
  // Must be called after a change of the frames or of the number of registers.
  void FindFrameRegisters() {
    frame_registers = memory.registers.data() + frame().first_register;
  }
};

}  // namespace millrace::ptxemu
