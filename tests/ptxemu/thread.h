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
  uint32_t first_register = 0;  // in Thread::registers
  uint32_t first_local = 0;     // in Thread::local
  std::vector<uint8_t> parameters;
  std::vector<uint8_t> call_parameters;
};

struct Thread {
  enum class State : uint8_t { kReady, kAtBarrier, kAtWarpOperation, kExited };

  State state = State::kReady;
  Extent place;  // threadIdx
  uint32_t index = 0;
  uint32_t lane = 0;
  uint32_t warp = 0;
  uint32_t member_mask = 0;  // of the warp operation that it is at
  int barrier = 0;           // the barrier that it is at
  int barrier_threads = -1;  // how many that waits for; -1 for all
  bool carry = false;
  std::vector<Frame> frames;
  std::vector<uint64_t> registers;      // of all frames
  uint64_t* frame_registers = nullptr;  // the last frame's, in `registers`
  std::vector<uint8_t> local;           // memory of all frames

  Frame& frame() { return frames.back(); }
  const Frame& frame() const { return frames.back(); }
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
  // Must be called after a change of `frames` or of the size of `registers`.
  void FindFrameRegisters() {
    frame_registers = registers.data() + frame().first_register;
  }
};

}  // namespace millrace::ptxemu
