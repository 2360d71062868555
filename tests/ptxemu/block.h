// SPDX-License-Identifier: Apache-2.0
// A block of threads that runs a kernel. block.cc schedules the threads and
// lets them meet; execution.cc executes their instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/ptxemu/instruction.h"
#include "tests/ptxemu/launch.h"
#include "tests/ptxemu/thread.h"

namespace millrace::ptxemu {

inline constexpr int kBarriers = 16;

class Block {
 public:
  // `launch` and `random` must outlive the block. The launch ends with a fault
  // once LaunchStatistics::instructions exceeds `last_instruction`.
  Block(const Launch& launch, uint64_t number, uint64_t last_instruction,
        std::mt19937_64* random);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Lets each thread that is ready run for a while, in a random order.
  absl::Status RunRound();
  bool HasEnded() const { return unfinished_ == 0; }

 private:
  // How many instructions a thread executes before it is another one's turn.
  int DrawQuantum();
  absl::Status DescribeDeadlock() const;
  absl::Status AddPlace(const absl::Status& fault, const Thread& thread) const;

  void Start(Thread* thread) const;
  void Exit(Thread* thread);

  // Meetings of threads. Each returns when the thread has to wait, or with all
  // members ready to go on behind the instruction.
  void EnterBarrier(Thread* thread, const Instruction& in);
  // Releases the barriers at which as many threads wait as they need.
  void ReleaseBarriers();
  void ReleaseBarrier(int barrier);
  absl::Status EnterWarpOperation(Thread* thread, const Instruction& in);
  // Whether all lanes that the operation names have arrived.
  absl::StatusOr<bool> HaveAllArrived(const Thread& thread,
                                      const Instruction& in) const;
  void CompleteWarpOperation(const Thread& thread, const Instruction& in);
  Thread* LaneOf(const Thread& thread, uint32_t lane);
  const Thread* LaneOf(const Thread& thread, uint32_t lane) const;

  // execution.cc
  absl::Status RunThread(Thread* thread, int quantum);
  // Executes an instruction that RunThread() does not execute itself, and moves
  // on to the next.
  absl::Status Execute(Thread* thread, const Instruction& in);
  absl::Status ExecuteControl(Thread* thread, const Instruction& in);
  void SplitOrJoin(Thread* thread, const Instruction& in) const;
  void SetPredicate(Thread* thread, const Instruction& in) const;
  absl::Status Load(Thread* thread, const Instruction& in);
  absl::Status Store(Thread* thread, const Instruction& in);
  absl::Status ExecuteAtomic(Thread* thread, const Instruction& in);
  void ConvertAddress(Thread* thread, const Instruction& in) const;
  absl::Status Call(Thread* thread, const Instruction& in) const;
  void Return(Thread* thread);

  uint64_t Value(const Thread& thread, const Operand& operand) const {
    if (operand.kind == Operand::Kind::kRegister && !operand.is_negated) {
      return thread.frame_registers[operand.register_index];
    }
    if (operand.kind <= Operand::Kind::kImmediate) return operand.value;
    return UnusualValue(thread, operand);
  }
  uint64_t UnusualValue(const Thread& thread, const Operand& operand) const;
  uint64_t SpecialValue(const Thread& thread, SpecialRegister name) const;
  Sources SourcesOf(Thread* thread, const Instruction& in) const {
    return {Value(*thread, in.sources[0]), Value(*thread, in.sources[1]),
            Value(*thread, in.sources[2]), Value(*thread, in.sources[3]),
            &thread->carry};
  }
  // Where the `bytes` bytes that the instruction accesses are.
  absl::StatusOr<uint8_t*> Resolve(Thread* thread, const Instruction& in,
                                   size_t bytes);
  Space SpaceOf(const Thread& thread, const Instruction& in) const;

  const Launch& launch_;
  const Function& kernel_;
  const uint64_t number_;
  const uint64_t last_instruction_;
  std::mt19937_64& random_;
  Extent place_;  // blockIdx
  int grain_;
  size_t dynamic_shared_;  // the offset of dynamic shared memory
  std::vector<uint8_t> shared_;
  std::vector<uint64_t> fresh_registers_;  // what those of a new thread hold
  std::vector<Thread> threads_;
  std::vector<uint32_t> ready_;
  uint32_t unfinished_;
  uint32_t waiting_[kBarriers] = {};  // threads at each barrier
  int expected_[kBarriers] = {};      // how many each waits for; -1 for all
};

}  // namespace millrace::ptxemu
