// SPDX-License-Identifier: Apache-2.0
#include "common/graph/owner_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/graph/partition_book.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<OwnerGroup> Group(const std::vector<int>& owners, int parts,
                              size_t most) {
  return GroupByOwner(
      owners.size(), parts, [&](size_t i) { return owners[i]; }, most);
}

TEST(GroupByOwnerTest, HoldsEachItemOnceInOrder) {
  const std::vector<int> owners = {2, 0, 2, kNoOwner, 0, 2, 2, 0, 2};
  for (const size_t most : {1u, 2u, 3u, 5u, 6u, 100u}) {
    std::vector<std::vector<uint32_t>> places(3);
    for (const OwnerGroup& group : Group(owners, 3, most)) {
      EXPECT_FALSE(group.places.empty());
      EXPECT_LE(group.places.size(), most);
      std::vector<uint32_t>& all = places[group.partition];
      // Only the last group of a partition may have room left.
      EXPECT_EQ(all.size() % most, 0u);
      all.insert(all.end(), group.places.begin(), group.places.end());
    }
    EXPECT_THAT(places[0], ElementsAre(1, 4, 7)) << most;
    EXPECT_THAT(places[1], IsEmpty()) << most;
    EXPECT_THAT(places[2], ElementsAre(0, 2, 5, 6, 8)) << most;
  }
  EXPECT_THAT(Group({}, 3, 1), IsEmpty());
  EXPECT_THAT(Group({kNoOwner, kNoOwner}, 1, 1), IsEmpty());
}

TEST(GroupByOwnerTest, RestoresTheOriginalOrder) {
  const std::vector<int> owners = {1, 0, 1, 0, 0};
  const std::vector<int> items = {10, 11, 12, 13, 14};
  std::vector<int> back(items.size());
  for (const OwnerGroup& group : Group(owners, 2, 2)) {
    PutAt<int>(TakeAt<int>(items, group.places), group.places, back);
  }
  EXPECT_EQ(back, items);
}

// Partitions that own nothing are at either end and in between.
TEST(PartitionBookTest, TheOwnersRangeContainsTheId) {
  const std::vector<std::vector<uint64_t>> books = {
      {0, 5}, {0, 2, 5}, {0, 0, 3, 3, 5, 5}};
  for (const std::vector<uint64_t>& offsets : books) {
    const PartitionBook book(offsets);
    EXPECT_EQ(book.node_count(), 5u);
    for (uint64_t id = 0; id < 5; ++id) {
      for (int part = 0; part < book.partition_count(); ++part) {
        const bool owns = book.begin(part) <= id && id < book.end(part);
        EXPECT_EQ(book.Owner(id) == part, owns) << id << " of " << part;
      }
    }
  }
}

TEST(PartitionBookTest, LookupTablesHoldAllOriginalIds) {
  for (uint64_t nodes = 0; nodes < 20; ++nodes) {
    for (uint64_t parts = 1; parts < 6; ++parts) {
      std::vector<uint64_t> offsets(parts + 1, nodes);
      offsets[0] = 0;
      const uint64_t width = PartitionBook(offsets).lookup_width();
      EXPECT_GE(width * parts, nodes);
      // No table is longer than it must be.
      EXPECT_LT(width * parts, nodes + parts);
    }
  }
}

}  // namespace
}  // namespace millrace
