// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/relabel.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace millrace {
namespace {

TEST(RelabelerTest, NumbersByFirstAppearance) {
  std::mt19937_64 random(5);
  for (const bool disjoint : {false, true}) {
    Relabeler relabeler(disjoint);
    std::map<std::pair<uint64_t, uint32_t>, uint32_t> expected;
    for (int round = 0; round < 20; ++round) {
      std::vector<uint64_t> ids;
      std::vector<uint32_t> trees;
      for (int i = 0; i < 3000; ++i) {
        ids.push_back(random() % 20000 + (random() % 2 << 40));
        if (disjoint) trees.push_back(random() % 7);
      }
      std::vector<uint32_t> locals;
      relabeler.FindOrAppend(ids, trees, locals);
      ASSERT_EQ(locals.size(), ids.size());
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto key = std::pair(ids[i], disjoint ? trees[i] : 0u);
        const auto [it, unused] = expected.emplace(key, expected.size());
        ASSERT_EQ(locals[i], it->second);
      }
    }
    EXPECT_EQ(relabeler.count(), expected.size());
  }
}

}  // namespace
}  // namespace millrace
