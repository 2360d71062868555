// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/metis_partition.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kLimit = 2147483647;  // 2^31 - 1

TEST(CheckMetisSize, AcceptsWhatFitsIn32Bits) {
  EXPECT_TRUE(CheckMetisSize(kLimit, kLimit / 2).ok());
}

TEST(CheckMetisSize, NamesNumberLimitAndLdg) {
  const absl::Status edges = CheckMetisSize(10, kLimit / 2 + 1);
  EXPECT_EQ(edges.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(edges.message(),
              AllOf(HasSubstr("2147483648 adjacency entries"),
                    HasSubstr("2147483647"), HasSubstr("--method ldg")));
  const absl::Status nodes = CheckMetisSize(kLimit + 1, 10);
  EXPECT_EQ(nodes.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(nodes.message(),
              AllOf(HasSubstr("2147483648 nodes"), HasSubstr("2147483647"),
                    HasSubstr("--method ldg")));
}

}  // namespace
}  // namespace millrace
