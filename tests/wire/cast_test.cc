// SPDX-License-Identifier: Apache-2.0
#include "common/wire/cast.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(CastTest, NarrowsFloatsOnly) {
  EXPECT_TRUE(CanCast(DType::kFloat32, DType::kFloat16));
  EXPECT_TRUE(CanCast(DType::kFloat64, DType::kBFloat16));
  EXPECT_TRUE(CanCast(DType::kInt64, DType::kInt64));
  EXPECT_FALSE(CanCast(DType::kInt64, DType::kFloat16));
  EXPECT_FALSE(CanCast(DType::kFloat16, DType::kFloat32));
}

TEST(CastTest, FeaturesThatCannotBeCastAreNamed) {
  NodeType items;
  items.name = "item";
  items.feature.dtype = DType::kFloat32;
  EXPECT_EQ(CheckCast(items, DType::kFloat16), absl::OkStatus());
  items.feature.dtype = DType::kInt64;
  EXPECT_EQ(CheckCast(items, DType::kFloat16),
            absl::InvalidArgumentError(
                "features of item are int64 and cannot be sent as float16"));
}

}  // namespace
}  // namespace millrace
