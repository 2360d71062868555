// SPDX-License-Identifier: Apache-2.0
#include "server/load/connection_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/wire/error_info.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using Place = ConnectionCalls::Place;

Place Enter(ConnectionCalls& calls, const std::string& connection) {
  auto place = calls.Enter(connection);
  EXPECT_TRUE(place.ok()) << place.status();
  return *std::move(place);
}

TEST(ConnectionCallsTest, LimitsCallsOfAConnection) {
  ConnectionCalls calls(2);
  const Place first = Enter(calls, "a"), second = Enter(calls, "a");
  const absl::Status refused = calls.Enter("a").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("has 2 unfinished calls, the limit"));
  // An innocent client may try again.
  EXPECT_TRUE(IsRetryable(refused));
  const Place other = Enter(calls, "b");
}

TEST(ConnectionCallsTest, PlacesAreGivenBack) {
  ConnectionCalls calls(1);
  for (int i = 0; i < 3; ++i) Enter(calls, "a");
  Place place = Enter(calls, "a");
  {
    const Place moved = std::move(place);
    EXPECT_FALSE(calls.Enter("a").ok());
  }
  place = Enter(calls, "a");
  EXPECT_FALSE(calls.Enter("a").ok());
  place = Place();
  EXPECT_TRUE(calls.Enter("a").ok());
}

}  // namespace
}  // namespace millrace
