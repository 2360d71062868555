// SPDX-License-Identifier: Apache-2.0
#include "common/sample/list_lengths.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/sample/job.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

TEST(ListLengthsTest, LengthsAreDegreesInEachPartition) {
  const testing::TestGraph graph = testing::SmallGraph();
  std::vector<int64_t> in(graph.types[0].count), out(in.size());
  for (const auto& [source, target] : graph.relations[0].edges) {
    ++out[source];
    ++in[target];
  }
  for (const int parts : {0, 3}) {
    const std::unique_ptr<Store> store =
        testing::TestStore(graph, parts).Open();
    size_t nodes = 0;
    for (int part = 0; part < store->partition_count(); ++part) {
      const ListLengths ins(*store, part, 0, Direction::kIn);
      const ListLengths outs(*store, part, 0, Direction::kOut);
      const Array& originals = store->partition(part)->nodes[0].original_id;
      for (int64_t row = 0; row < originals.rows(); ++row, ++nodes) {
        const uint64_t id = store->book(0).begin(part) + row;
        const auto original = static_cast<size_t>(originals.IntegerAt(row));
        EXPECT_EQ(ins.Of(id), in[original]) << id;
        EXPECT_EQ(outs.Of(id), out[original]) << id;
      }
      // The id after the partition's last has no list here.
      EXPECT_EQ(ins.Of(store->book(0).begin(part) + originals.rows()), 0);
    }
    EXPECT_EQ(nodes, in.size());
  }
}

TEST(ListLengthsTest, PicksAreBoundedByListsUnlessTheyAreReplaced) {
  for (const bool replace : {false, true}) {
    EXPECT_EQ(MaxPicks(0, 5, replace), 0);
    EXPECT_EQ(MaxPicks(7, 5, replace), 5);
    EXPECT_EQ(MaxPicks(7, kAllNeighbors, replace), 7);
    EXPECT_EQ(MaxPicks(0, kAllNeighbors, replace), 0);
  }
  EXPECT_EQ(MaxPicks(3, 5, false), 3);
  EXPECT_EQ(MaxPicks(3, 5, true), 5);
}

}  // namespace
}  // namespace millrace
