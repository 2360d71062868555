// SPDX-License-Identifier: Apache-2.0
#include "common/base/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using ::testing::ElementsAre;

TEST(Array, DefaultIsAbsent) {
  const Array array;
  EXPECT_FALSE(array.present());
  EXPECT_EQ(array.rows(), 0);
  EXPECT_EQ(array.element_count(), 0);
  EXPECT_EQ(array.total_bytes(), 0u);
  EXPECT_TRUE(array.As<float>().empty());
}

TEST(Array, AllocatesAlignedMemoryOfItsShape) {
  Array array = Array::Allocate(DType::kFloat32, {5, 3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u);
  EXPECT_EQ(array.rows(), 5);
  EXPECT_EQ(array.row_bytes(), 12u);
  EXPECT_EQ(array.total_bytes(), 60u);
  EXPECT_EQ(array.MutableAs<float>().size(), 15u);
}

TEST(Array, EmptyRowsAreWellFormed) {
  const Array none = Array::Allocate(DType::kInt64, {0, 7});
  EXPECT_TRUE(none.present());
  EXPECT_EQ(none.row_bytes(), 56u);
  EXPECT_EQ(none.total_bytes(), 0u);
  const Array flat = Array::Allocate(DType::kInt64, {7, 0});
  EXPECT_EQ(flat.row_bytes(), 0u);
  EXPECT_EQ(flat.rows(), 7);
}

TEST(Array, CopiesShareMemoryAndOutliveEachOther) {
  Array copy;
  {
    const Array array = Array::Adopt(std::vector<int32_t>{1, 2, 3});
    copy = array;
    EXPECT_EQ(copy.data(), array.data());
  }
  EXPECT_THAT(copy.As<int32_t>(), ElementsAre(1, 2, 3));
}

TEST(Array, BorrowKeepsOwnerAlive) {
  auto owner = std::make_shared<std::vector<float>>(4, 2.5F);
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    const void* data = owner->data();
    const Array array =
        Array::Borrow(DType::kFloat32, {2, 2}, data, std::move(owner));
    EXPECT_FALSE(watch.expired());
    EXPECT_FLOAT_EQ(array.As<float>()[3], 2.5F);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Array, IntegerAtReadsAnyIntegerDType) {
  EXPECT_EQ(Array::Adopt(std::vector<uint8_t>{200}).IntegerAt(0), 200);
  EXPECT_EQ(Array::Adopt(std::vector<int8_t>{-3}).IntegerAt(0), -3);
  EXPECT_EQ(Array::Adopt(std::vector<uint32_t>{4000000000U}).IntegerAt(0),
            4000000000);
  EXPECT_EQ(Array::Adopt(std::vector<int32_t>{-7}).IntegerAt(0), -7);
  EXPECT_EQ(Array::Adopt(std::vector<uint64_t>{1ULL << 40}).IntegerAt(0),
            int64_t{1} << 40);
}

TEST(Array, ToInt64WidensOrShares) {
  const Array wide =
      ToInt64(Array::Adopt(std::vector<uint32_t>{0, 4294967295U}));
  EXPECT_THAT(wide.As<int64_t>(), ElementsAre(0, 4294967295));
  const Array same = Array::Adopt(std::vector<int64_t>{1});
  EXPECT_EQ(ToInt64(same).data(), same.data());
  EXPECT_FALSE(ToInt64(Array()).present());
}

TEST(Array, IntegersOfEveryDTypeAreWidened) {
  const auto expect = [](const Array& array, int64_t first, int64_t second) {
    const Array wide = ToInt64(array);
    EXPECT_EQ(wide.dtype(), DType::kInt64);
    EXPECT_THAT(wide.As<int64_t>(), ElementsAre(first, second));
    EXPECT_EQ(array.IntegerAt(0), first);
    EXPECT_EQ(array.IntegerAt(1), second);
  };
  expect(Array::Adopt(std::vector<uint8_t>{7, 255}), 7, 255);
  expect(Array::Adopt(std::vector<int8_t>{-128, 127}), -128, 127);
  expect(Array::Adopt(std::vector<int32_t>{-9, 5}), -9, 5);
  expect(Array::Adopt(std::vector<uint32_t>{1, 1u << 31}), 1, int64_t{1} << 31);
  expect(Array::Adopt(std::vector<uint64_t>{2, 3}), 2, 3);
  expect(Array::Adopt(std::vector<int64_t>{-4, 4}), -4, 4);
}

TEST(Array, KnowsItsDevice) {
  const Array host = Array::Allocate(DType::kUint32, {2});
  EXPECT_TRUE(host.on_host());
  EXPECT_EQ(host.device(), kHost);
  const Array gpu =
      Array::Borrow(DType::kUint32, {2}, host.data(), nullptr, /*device=*/1);
  EXPECT_FALSE(gpu.on_host());
  EXPECT_EQ(gpu.device(), 1);
  EXPECT_EQ(Array(gpu).device(), 1);
  EXPECT_EQ(gpu.total_bytes(), 8);
}

TEST(ArrayDeathTest, ElementsOfADeviceAreNotForTheHost) {
  const Array host = Array::Allocate(DType::kUint32, {2});
  Array gpu =
      Array::Borrow(DType::kUint32, {2}, host.data(), nullptr, /*device=*/0);
  EXPECT_DEATH(gpu.As<uint32_t>(), "on_host");
  EXPECT_DEATH(gpu.MutableAs<uint32_t>(), "on_host");
  EXPECT_DEATH(gpu.IntegerAt(0), "on_host");
}

TEST(ArrayDeathTest, WrongTypeIsABug) {
  const Array array = Array::Adopt(std::vector<int32_t>{1});
  EXPECT_DEATH(array.As<float>(), "check failed");
  EXPECT_DEATH(array.IntegerAt(1), "check failed");
  EXPECT_DEATH(array.IntegerAt(-1), "check failed");
  const Array floats = Array::Adopt(std::vector<float>{1});
  EXPECT_DEATH(floats.IntegerAt(0), "check failed");
  EXPECT_DEATH(ToInt64(floats), "check failed");
}

// Stores and messages between programs use these.
TEST(DType, HasTheNamesAndSizesOfNumpy) {
  struct Case {
    int number;
    DType dtype;
    std::string_view name, descr;
    size_t bytes;
  };
  for (const Case& c : {Case{0, DType::kNone, "none", "", 0},
                        Case{1, DType::kUint8, "uint8", "|u1", 1},
                        Case{2, DType::kInt8, "int8", "|i1", 1},
                        Case{3, DType::kInt32, "int32", "<i4", 4},
                        Case{4, DType::kUint32, "uint32", "<u4", 4},
                        Case{5, DType::kInt64, "int64", "<i8", 8},
                        Case{6, DType::kUint64, "uint64", "<u8", 8},
                        Case{7, DType::kFloat16, "float16", "<f2", 2},
                        Case{8, DType::kFloat32, "float32", "<f4", 4},
                        Case{9, DType::kFloat64, "float64", "<f8", 8},
                        Case{10, DType::kBFloat16, "bfloat16", "<u2", 2}}) {
    EXPECT_EQ(static_cast<int>(c.dtype), c.number);
    EXPECT_EQ(DTypeName(c.dtype), c.name);
    EXPECT_EQ(NpyDescr(c.dtype), c.descr);
    EXPECT_EQ(ItemBytes(c.dtype), c.bytes);
  }
  EXPECT_EQ(DTypeFromName("float\n").status().message(),
            "'float\\n' is not a dtype; there are uint8, int8, int32, uint32, "
            "int64, uint64, float16, float32, float64 and bfloat16");
  const std::string convert =
      "' is not supported; convert to (u)int8, (u)int32, (u)int64, float16, "
      "float32 or float64";
  EXPECT_EQ(DTypeFromNpyDescr("<c8").status().message(),
            "numpy dtype '<c8" + convert);
  EXPECT_EQ(DTypeFromNpyDescr(">f4").status().message(),
            "numpy dtype '>f4" + convert + ", little endian");
}

TEST(DType, NamesAndDescriptorsRoundTrip) {
  for (int number = 1; number <= 10; ++number) {
    const auto dtype = static_cast<DType>(number);
    EXPECT_EQ(DTypeFromName(DTypeName(dtype)).value(), dtype);
    if (dtype == DType::kBFloat16) continue;
    EXPECT_EQ(DTypeFromNpyDescr(NpyDescr(dtype)).value(), dtype);
  }
  EXPECT_EQ(ItemBytes(static_cast<DType>(99)), 0u);
  EXPECT_EQ(DTypeFromName("float").status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const char* descr : {"<u2", ">f4", "<c8", "|b1", ""}) {
    EXPECT_EQ(DTypeFromNpyDescr(descr).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace millrace
