// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/request_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace millrace {
namespace {

using ::testing::MatchesRegex;

TEST(RequestIdTest, OnlyShortPlainWordsAreAccepted) {
  for (const std::string& id :
       {std::string("a"), std::string("1f0c9a2b-3-1234-57.1"),
        std::string("A.b_c-9"), std::string(64, 'x')}) {
    EXPECT_TRUE(IsRequestId(id)) << id;
  }
  for (const std::string& id :
       {std::string(), std::string(65, 'x'), std::string("a b"),
        std::string("a\nb"), std::string("a\"b"), std::string("a/b"),
        std::string("\xc3\xa9"), std::string("a\0b", 3), std::string("a=b")}) {
    EXPECT_FALSE(IsRequestId(id)) << id;
  }
}

TEST(RequestIdTest, OneOfABatchNamesItAndIsUnique) {
  RequestIds ids, others;
  const std::string first = ids.OfBatch(3, 1234), again = ids.OfBatch(3, 1234);
  EXPECT_THAT(first, MatchesRegex("[0-9a-f]{8}-3-1234-1"));
  EXPECT_NE(first, again);
  EXPECT_EQ(first.substr(0, 8), again.substr(0, 8));
  EXPECT_NE(first.substr(0, 8), others.OfBatch(3, 1234).substr(0, 8));
  EXPECT_THAT(ids.Of("rows"), MatchesRegex("[0-9a-f]{8}-rows-3"));
}

TEST(RequestIdTest, UsualOnesAreAccepted) {
  RequestIds ids;
  constexpr uint32_t kLarge = std::numeric_limits<uint32_t>::max();
  EXPECT_TRUE(IsRequestId(ids.OfBatch(kLarge, kLarge) + ".1000000"));
}

}  // namespace
}  // namespace millrace
