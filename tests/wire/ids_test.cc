// SPDX-License-Identifier: Apache-2.0
#include "common/wire/ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Written(const std::vector<uint64_t>& ids, DType dtype) {
  std::string bytes;
  AppendIds(ids, dtype, bytes);
  return bytes;
}

TEST(WireIdsTest, AreReadAsTheyWereWritten) {
  for (const DType dtype : {DType::kUint32, DType::kUint64}) {
    const auto ids = ReadIds(Written({5, 8, 7}, dtype), dtype, 5, 9, "ids");
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_THAT(*ids, ElementsAre(5, 8, 7));
  }
}

TEST(WireIdsTest, AreInTheirRange) {
  for (const DType dtype : {DType::kUint32, DType::kUint64}) {
    for (const uint64_t id : {4, 9, 0}) {
      const absl::Status status =
          ReadIds(Written({5, id, 4}, dtype), dtype, 5, 9, "ids").status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("ids[1] is " + std::to_string(id) +
                            ", which is not in the id range [5, 9)"));
    }
  }
}

TEST(WireIdsTest, AreNotCutOff) {
  std::string bytes = Written({1, 2}, DType::kUint32);
  bytes.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReadIds(bytes, DType::kUint32, 0, 9, "ids").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRaw<int64_t>(bytes, "x").status()));
}

TEST(WireIdsTest, ErrorsNameTheFieldAndTheSize) {
  EXPECT_EQ(
      ReadIds("1234567", DType::kUint32, 0, 9, "among").status().message(),
      "among has 7 bytes, which is not a multiple of 4");
  EXPECT_EQ(ReadIds("1234", DType::kUint64, 0, 9, "rows").status().message(),
            "rows has 4 bytes, which is not a multiple of 8");
  EXPECT_EQ(ReadRaw<int64_t>("1234", "times").status().message(),
            "times has 4 bytes, which is not a multiple of 8");
  EXPECT_EQ(ReadIds(Written({9}, DType::kUint64), DType::kUint64, 0, 9, "ids")
                .status()
                .message(),
            "ids[0] is 9, which is not in the id range [0, 9)");
  EXPECT_TRUE(ReadIds("", DType::kUint64, 0, 0, "ids")->empty());
}

TEST(WireIdsTest, AreAppended) {
  std::string bytes = "x";
  AppendIds(std::vector<uint64_t>{1}, DType::kUint32, bytes);
  AppendRaw(std::span<const uint32_t>(std::vector<uint32_t>{2}), bytes);
  EXPECT_EQ(bytes, std::string("x\1\0\0\0\2\0\0\0", 9));
}

}  // namespace
}  // namespace millrace
