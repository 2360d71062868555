// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/cuda/sample/thread_queue.h"
// The kernels need the words of CUDA C++.
#include "common/cuda/sample/node_numbers.cuh"
#include "common/sample/draw/relabel.h"

namespace millrace::testing {
namespace {

using cuda::NodeNumbers;
using cuda::NumberingScratch;

struct Nodes {
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;  // empty unless disjoint
};

template <typename RandomId>
Nodes RandomNodes(size_t count, bool disjoint, RandomId random_id) {
  Nodes nodes;
  for (size_t i = 0; i < count; ++i) {
    nodes.ids.push_back(random_id());
    if (disjoint) nodes.trees.push_back(random_id() % 3);
  }
  return nodes;
}

// Numbers several rounds of nodes in both ways.
void ExpectSameNumbers(const std::vector<Nodes>& rounds, bool disjoint,
                       unsigned block) {
  ThreadQueue queue(block);
  NodeNumbers numbers(queue);
  NumberingScratch scratch(queue);
  Relabeler expected(disjoint);
  uint64_t known = 0, numbered = 0;
  uint32_t trouble = 0;
  size_t total = 0;
  for (const Nodes& nodes : rounds) total += nodes.ids.size();
  std::vector<uint32_t> locals(total + 1), expected_locals;
  numbers.Start(disjoint, &known);
  for (const Nodes& nodes : rounds) {
    const uint64_t count = nodes.ids.size();
    ASSERT_TRUE(scratch.Reserve(count));
    // Grows in each round.
    ASSERT_TRUE(numbers.Reserve(known + count, known));
    numbers.Number({nodes.ids.data(), disjoint ? nodes.trees.data() : nullptr,
                    &count, count},
                   scratch, &numbered, locals.data(), &trouble);
    expected.FindOrAppend(nodes.ids, nodes.trees, expected_locals);
    ASSERT_EQ(known, expected.count());
    ASSERT_EQ(numbered, expected_locals.size());
  }
  EXPECT_EQ(trouble, 0u);
  locals.resize(total);
  EXPECT_EQ(locals, expected_locals);
  EXPECT_EQ(std::vector(numbers.ids(), numbers.ids() + known), expected.ids());
  if (disjoint) {
    EXPECT_EQ(std::vector(numbers.trees(), numbers.trees() + known),
              expected.trees());
  }
}

TEST(NumberingTest, NumbersAsRelabelerDoes) {
  std::mt19937_64 random(5);
  for (const bool disjoint : {false, true}) {
    for (const unsigned block : {32u, 64u}) {
      const auto any = [&] { return random(); };
      const auto few = [&] { return random() % 40; };
      const auto some = [&] { return uint64_t{1} << 40 | random() % 700; };
      ExpectSameNumbers(
          {RandomNodes(300, disjoint, any), RandomNodes(0, disjoint, any),
           RandomNodes(1, disjoint, any), RandomNodes(500, disjoint, few)},
          disjoint, block);
      ExpectSameNumbers(
          {RandomNodes(200, disjoint, some), RandomNodes(400, disjoint, some),
           RandomNodes(150, disjoint, some)},
          disjoint, block);
    }
  }
}

TEST(NumberingTest, NumbersEqualNodes) {
  ExpectSameNumbers({{std::vector<uint64_t>(200, ~uint64_t{0}), {}},
                     {std::vector<uint64_t>(100, 0), {}}},
                    false, 64);
}

// Ids whose hashes share their upper bits fill a stretch of the table.
TEST(NumberingTest, NumbersNodesThatCollide) {
  constexpr uint64_t kInverse = 0xF1DE83E19937733Du;  // of the hash's factor
  static_assert(kInverse * 0x9E3779B97F4A7C15u == 1);
  uint64_t next = 0;
  const auto colliding = [&] { return kInverse * (next++ % 150); };
  ExpectSameNumbers({RandomNodes(300, false, colliding)}, false, 32);
}

TEST(NumberingTest, ReportsMoreNodesThanThereIsRoomFor) {
  ThreadQueue queue;
  NodeNumbers numbers(queue);
  NumberingScratch scratch(queue);
  const std::vector<uint64_t> ids = {1, 2, 3, 4, 5, 6};
  const uint64_t count = ids.size();
  uint64_t known = 0, numbered = 0;
  uint32_t trouble = 0;
  std::vector<uint32_t> locals(ids.size());
  numbers.Start(false, &known);
  ASSERT_TRUE(scratch.Reserve(count));
  ASSERT_TRUE(numbers.Reserve(4, 0));
  numbers.Number({ids.data(), nullptr, &count, count}, scratch, &numbered,
                 locals.data(), &trouble);
  EXPECT_EQ(trouble, cuda::kTooMany);
  EXPECT_EQ(known, 4u);
}

}  // namespace
}  // namespace millrace::testing
