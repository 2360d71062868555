// SPDX-License-Identifier: Apache-2.0
#include "client/cli/local_fleet.h"

#include <gmock/gmock.h>

#include <string>

namespace millrace {
namespace {

TEST(LocalFleetTest, ServersMustFitTheHost) {
  LocalFleet fleet("no such program");
  const absl::Status status =
      fleet.Start("store", /*parts=*/1, /*servers=*/1 << 30).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      ::testing::StartsWith("starting 1073741824 servers needs 11.3 PB of "
                            "memory, but "));
}

}  // namespace
}  // namespace millrace
