// SPDX-License-Identifier: Apache-2.0
#include "server/load/fair_shares.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(FairSharesTest, SharesEquallyAmongClientsThatHoldSomething) {
  FairShares shares(100);
  EXPECT_EQ(shares.ShareOf("a"), 100u);
  shares.Add("a", 70);
  EXPECT_EQ(shares.ShareOf("a"), 100u);
  EXPECT_EQ(shares.ShareOf("b"), 50u);
  shares.Add("b", 10);
  EXPECT_EQ(shares.ShareOf("a"), 50u);
  EXPECT_EQ(shares.ShareOf("c"), 33u);
  EXPECT_EQ(shares.HeldBy("a"), 70u);
  EXPECT_EQ(shares.total(), 80u);
}

TEST(FairSharesTest, ForgetsClientsThatHoldNothing) {
  FairShares shares(100);
  shares.Add("a", 3);
  shares.Add("b", 3);
  shares.Add("c", 0);
  shares.Remove("b", 3);
  EXPECT_EQ(shares.HeldBy("b"), 0u);
  EXPECT_EQ(shares.ShareOf("a"), 100u);
  EXPECT_EQ(shares.total(), 3u);
}

TEST(FairSharesTest, SharesAreZeroWithMoreClientsThanPlaces) {
  FairShares shares(2);
  for (const char* client : {"a", "b"}) shares.Add(client, 1);
  EXPECT_EQ(shares.ShareOf("a"), 1u);
  EXPECT_EQ(shares.ShareOf("c"), 0u);
}

}  // namespace
}  // namespace millrace
