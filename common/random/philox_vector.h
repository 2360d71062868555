// SPDX-License-Identifier: Apache-2.0
// Philox numbers of many nodes, computed with the CPU's vector unit. Included
// only by philox_many.cc and the files compiled for one unit. The latter must
// not include inline functions from elsewhere: the linker might use the copies
// compiled there, which not every CPU can run, throughout the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

// Random123's constants for Philox4x32: the multipliers, and the increments of
// the key after each round.
inline constexpr uint32_t kPhiloxM0 = 0xD2511F53;
inline constexpr uint32_t kPhiloxM1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9;
inline constexpr uint32_t kPhiloxW1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

// Parameters shared by the numbers of a list of nodes.
struct PhiloxTask {
  uint32_t key[2];
  uint32_t c2;
  uint64_t limit;
};

// The numbers of up to kSize nodes. Bit i % kMask of at_most[i / kMask] is set
// if number i is at most the limit.
struct PhiloxBlock {
  static constexpr size_t kSize = 512;
  static constexpr size_t kGroup = 16;  // nodes numbered at a time
  static constexpr size_t kMask = 64;

  alignas(64) uint64_t numbers[kSize];
  uint64_t at_most[kSize / kMask];
};

// `count` must be at most kSize.
void PhiloxAvx2(const PhiloxTask& task, const uint32_t* nodes, size_t count,
                PhiloxBlock& block);
void PhiloxAvx512(const PhiloxTask& task, const uint32_t* nodes, size_t count,
                  PhiloxBlock& block);

// Philox with the instructions that Unit provides. Each 64-bit lane holds one
// 32-bit word of the state; multiplications read only the low half, so the high
// half may hold anything. The work that is the same for all nodes (words 1 to 3
// of the counter, through rounds 0 and 1) is done once, and the last two rounds
// leave out what only words 2 and 3 of the result need.
template <typename Unit>
class PhiloxVector {
 public:
  explicit PhiloxVector(const PhiloxTask& task) : limit_(task.limit) {
    for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
      k0_[round] = Unit::Set(Key0(task, round));
      k1_[round] = Unit::Set(Key1(task, round));
    }
    // Fold the words that all nodes share into the keys they are XORed with.
    const uint64_t p1 = uint64_t{task.c2} * kPhiloxM1;
    const uint64_t p0 = uint64_t{High(p1) ^ Key0(task, 0)} * kPhiloxM0;
    k0_[1] = Unit::Set(Key0(task, 1) ^ Low(p1));
    k1_[1] = Unit::Set(Key1(task, 1) ^ High(p0));
    k1_[2] = Unit::Set(Key1(task, 2) ^ Low(p0));
  }

  void Number(const uint32_t* nodes, size_t count, PhiloxBlock& block) const {
    constexpr size_t kGroup = PhiloxBlock::kGroup;
    uint32_t filled[kGroup] = {};
    if (count < kGroup) {
      for (size_t i = 0; i < count; ++i) filled[i] = nodes[i];
      nodes = filled;
    }
    for (uint64_t& mask : block.at_most) mask = 0;
    for (size_t at = 0; at < count; at += kGroup) {
      // The last group overlaps the one before it if it would not be full.
      const size_t last = count < kGroup ? 0 : count - kGroup;
      const size_t from = at < last ? at : last;
      const uint64_t mask =
          NumberGroup(nodes + from, block.numbers + from) >> (at - from);
      block.at_most[at / PhiloxBlock::kMask] |= mask << at % PhiloxBlock::kMask;
    }
    if (count < kGroup) block.at_most[0] &= (uint64_t{1} << count) - 1;
  }

 private:
  using Words = typename Unit::Words;
  // Independent computations, interleaved to hide each other's latencies.
  static constexpr size_t kChains = PhiloxBlock::kGroup / Unit::kLanes;
  struct State {
    Words x0[kChains], x1[kChains], x2[kChains], x3[kChains];
  };

  static uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
  static uint32_t High(uint64_t value) {
    return static_cast<uint32_t>(value >> 32);
  }
  static uint32_t Key0(const PhiloxTask& task, uint32_t round) {
    return task.key[0] + round * kPhiloxW0;
  }
  static uint32_t Key1(const PhiloxTask& task, uint32_t round) {
    return task.key[1] + round * kPhiloxW1;
  }

  // hi(product) ^ word ^ key
  static Words Mix(Words product, Words word, Words key) {
    return Unit::Xor(Unit::High(product), Unit::Xor(word, key));
  }

  // Returns a mask with a bit set for each number that is at most the limit.
  uint64_t NumberGroup(const uint32_t* nodes, uint64_t* numbers) const {
    State state;
    FirstRounds(nodes, state);
    for (int round = 3; round < kPhiloxRounds - 2; ++round) {
      for (size_t i = 0; i < kChains; ++i) {
        const Words p0 = Unit::Times(state.x0[i], kPhiloxM0);
        const Words p1 = Unit::Times(state.x2[i], kPhiloxM1);
        state.x0[i] = Mix(p1, state.x1[i], k0_[round]);
        state.x1[i] = p1;
        state.x2[i] = Mix(p0, state.x3[i], k1_[round]);
        state.x3[i] = p0;
      }
    }
    return LastRounds(state, numbers);
  }

  // Rounds 0 to 2.
  void FirstRounds(const uint32_t* nodes, State& state) const {
    for (size_t i = 0; i < kChains; ++i) {
      const Words n = Unit::Load(nodes + i * Unit::kLanes);
      const Words q0 = Unit::Times(n, kPhiloxM0);
      const Words q1 =
          Unit::Times(Unit::Xor(Unit::High(q0), k1_[0]), kPhiloxM1);
      const Words x0 = Unit::Xor(Unit::High(q1), k0_[1]);
      const Words p0 = Unit::Times(x0, kPhiloxM0);
      const Words p1 = Unit::Times(Unit::Xor(q0, k1_[1]), kPhiloxM1);
      state.x0[i] = Mix(p1, q1, k0_[2]);
      state.x1[i] = p1;
      state.x2[i] = Unit::Xor(Unit::High(p0), k1_[2]);
      state.x3[i] = p0;
    }
  }

  uint64_t LastRounds(const State& state, uint64_t* numbers) const {
    uint64_t mask = 0;
    for (size_t i = 0; i < kChains; ++i) {
      const Words p0 = Unit::Times(state.x0[i], kPhiloxM0);
      const Words p1 = Unit::Times(state.x2[i], kPhiloxM1);
      const Words x2 = Mix(p0, state.x3[i], k1_[kPhiloxRounds - 2]);
      const Words q1 = Unit::Times(x2, kPhiloxM1);
      const Words word0 = Mix(q1, p1, k0_[kPhiloxRounds - 1]);
      const Words number = Unit::Join(word0, q1);
      Unit::Store(number, numbers + i * Unit::kLanes);
      mask |= uint64_t{Unit::AtMost(number, limit_)} << i * Unit::kLanes;
    }
    return mask;
  }

  const uint64_t limit_;
  Words k0_[kPhiloxRounds], k1_[kPhiloxRounds];
};

}  // namespace millrace
