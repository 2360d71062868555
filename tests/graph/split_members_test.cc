// SPDX-License-Identifier: Apache-2.0
#include "common/graph/split_members.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(SplitMembersTest, HoldsWhatWasAdded) {
  SplitMembers members(200);
  for (const uint64_t id : {0, 63, 64, 199}) members.Add(id);
  for (uint64_t id = 0; id < 200; ++id) {
    EXPECT_EQ(members.contains(id),
              id == 0 || id == 63 || id == 64 || id == 199)
        << id;
  }
}

// If they were skipped like other ids, they would hide that a list is damaged.
TEST(SplitMembersTest, DoesNotSkipOutOfRangeIds) {
  for (const uint64_t count : {0, 1, 63, 64, 65, 70}) {
    const SplitMembers members(count);
    for (uint64_t id = 0; id < count; ++id) EXPECT_FALSE(members.contains(id));
    for (uint64_t id = count; id < count + 200; ++id) {
      EXPECT_TRUE(members.contains(id)) << id << " of " << count;
    }
    EXPECT_TRUE(members.contains(~uint64_t{0}));
  }
}

}  // namespace
}  // namespace millrace
