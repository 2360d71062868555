// SPDX-License-Identifier: Apache-2.0
// Element types, tensors in memory, and their tables.
#include "common/table/elements.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/strings.h"
#include "common/table/combined_rows.h"
#include "common/table/npy_rows.h"
#include "common/table/row_source.h"
#include "common/table/stored_tensor.h"
#include "common/table/tensor_rows.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ElementsTest, ParsesTheNamesOfNumpy) {
  struct Case {
    const char* descr;
    ElementType type;
    bool big_endian;
  };
  for (const Case& c : {Case{"|b1", ElementType::kBool, false},
                        Case{"|u1", ElementType::kUint8, false},
                        Case{">i1", ElementType::kInt8, false},
                        Case{"<u2", ElementType::kUint16, false},
                        Case{">i2", ElementType::kInt16, true},
                        Case{"=u4", ElementType::kUint32, false},
                        Case{">i4", ElementType::kInt32, true},
                        Case{"<u8", ElementType::kUint64, false},
                        Case{"<i8", ElementType::kInt64, false},
                        Case{"<f2", ElementType::kFloat16, false},
                        Case{">f4", ElementType::kFloat32, true},
                        Case{"<f8", ElementType::kFloat64, false}}) {
    const auto format = ElementFormatFromNpy(c.descr);
    ASSERT_TRUE(format.ok()) << format.status();
    EXPECT_EQ(format->type, c.type) << c.descr;
    EXPECT_EQ(format->big_endian, c.big_endian) << c.descr;
  }
  for (const char* descr :
       {"", "<", "i4", "<i3", "<f16", "?i4", "<U4", "<i44"}) {
    EXPECT_THAT(
        std::string(ElementFormatFromNpy(descr).status().message()),
        HasSubstr(StrCat("numpy dtype '", descr, "' is not supported")));
  }
}

TEST(ElementsTest, KnowsWhatEachTypeIs) {
  const std::vector<
      std::tuple<ElementType, std::string_view, int64_t, bool, DType>>
      types = {{ElementType::kBool, "bool", 1, false, DType::kUint8},
               {ElementType::kUint8, "uint8", 1, true, DType::kUint8},
               {ElementType::kInt8, "int8", 1, true, DType::kInt8},
               {ElementType::kUint16, "uint16", 2, true, DType::kNone},
               {ElementType::kInt16, "int16", 2, true, DType::kNone},
               {ElementType::kUint32, "uint32", 4, true, DType::kUint32},
               {ElementType::kInt32, "int32", 4, true, DType::kInt32},
               {ElementType::kUint64, "uint64", 8, true, DType::kUint64},
               {ElementType::kInt64, "int64", 8, true, DType::kInt64},
               {ElementType::kFloat16, "float16", 2, false, DType::kFloat16},
               {ElementType::kBFloat16, "bfloat16", 2, false, DType::kBFloat16},
               {ElementType::kFloat32, "float32", 4, false, DType::kFloat32},
               {ElementType::kFloat64, "float64", 8, false, DType::kFloat64}};
  for (const auto& [type, name, bytes, integer, dtype] : types) {
    EXPECT_EQ(ElementName(type), name);
    EXPECT_EQ(ElementBytes(type), bytes) << name;
    EXPECT_EQ(IsInteger(type), integer) << name;
    EXPECT_EQ(DTypeOf(type), dtype) << name;
    const bool has_inverse =
        type != ElementType::kBool && dtype != DType::kNone;
    if (has_inverse) {
      EXPECT_EQ(ElementTypeOf(dtype), type);
    }
    const absl::Status integers = RequireIntegers("f", type);
    EXPECT_EQ(integers.ok(), integer || type == ElementType::kBool) << name;
    if (!integers.ok()) {
      EXPECT_EQ(integers.message(),
                StrCat("f: dtype ", name, ", but integers are needed here"));
    }
  }
}

TEST(ElementsTest, NamesTheRowOfAnIntegerOfMoreThan63Bits) {
  const int64_t large = std::numeric_limits<int64_t>::min();
  const int64_t values[] = {1, 2, 3, 4, 5, large};
  EXPECT_TRUE(
      RefuseLargeIntegers("f", ElementType::kInt64, 0, values, 3, 2).ok());
  EXPECT_TRUE(
      RefuseLargeIntegers("f", ElementType::kUint64, 0, values, 2, 2).ok());
  EXPECT_EQ(
      RefuseLargeIntegers("f", ElementType::kUint64, 7, values, 3, 2).message(),
      "f: row 9: 9223372036854775808 is above the largest integer, 2^63 - 1");
}

TEST(ElementsTest, ViewsHaveAtMostEightDimensions) {
  const StoredTensor storage{{ElementType::kInt32}, {1}, {1}, "1234", nullptr};
  const std::vector<int64_t> eight(8, 1), nine(9, 1);
  EXPECT_TRUE(ViewOfStorage("t", storage, 0, eight, eight).ok());
  EXPECT_EQ(ViewOfStorage("t", storage, 0, nine, nine).status().message(),
            "t: a tensor with 9 sizes and 9 strides; at most 8 dimensions are "
            "supported, with one size and one stride each");
  EXPECT_THAT(
      std::string(
          ViewOfStorage("t", storage, 0, eight, nine).status().message()),
      HasSubstr("t: a tensor with 8 sizes and 9 strides; "));
  EXPECT_EQ(ViewOfStorage("t", storage, 1, {1}, {2}).status().message(),
            "t: a tensor of shape [1], strides [2] and offset 1 does not fit "
            "its storage of 1 elements\nsave it again after .contiguous()");
}

StoredTensor TensorOf(std::vector<int64_t> sizes) {
  static const std::vector<float> zeros(64);
  StoredTensor tensor;
  tensor.format.type = ElementType::kFloat32;
  tensor.strides.assign(sizes.size(), 1);
  tensor.sizes = std::move(sizes);
  tensor.data = reinterpret_cast<const char*>(zeros.data());
  return tensor;
}

TEST(ElementsTest, TablesHaveOneOrTwoDimensions) {
  EXPECT_EQ((*TensorRows("t", TensorOf({3})))->width(), 1);
  EXPECT_EQ((*TensorRows("t", TensorOf({3, 2})))->width(), 2);
  EXPECT_EQ((*TensorRows("t", TensorOf({0, 1048576})))->rows(), 0);
  EXPECT_EQ((*TensorRows("t", TensorOf({3})))->Where(4), "t: row 4");
  EXPECT_EQ((*TensorRows("t", TensorOf({3}), "edge"))->Where(4), "t: edge 4");
  const std::vector<std::pair<std::vector<int64_t>, const char*>> wrong = {
      {{}, "t: shape [], but one or two dimensions are needed here"},
      {{1, 2, 3}, "t: shape [1, 2, 3], but one or two dimensions"},
      {{3, 0}, "t: shape [3, 0], but one or two dimensions"},
      {{0, 1048577},
       "t: rows of 1048577 values; a row has at most 1048576\nsave it with "
       "one row per node or edge"}};
  for (const auto& [sizes, what] : wrong) {
    const auto rows = TensorRows("t", TensorOf(sizes));
    EXPECT_THAT(std::string(rows.status().message()), HasSubstr(what));
  }
}

std::shared_ptr<const RowSource> Numbers(std::string name,
                                         std::vector<int64_t> values) {
  return ArrayRows(std::move(name), Array::Adopt(std::move(values)));
}

TEST(ElementsTest, NamesValuesThatAreNotFinite) {
  const auto rows = TensorRows("t", TensorOf({3, 2})).value();
  const float values[] = {1, 2, 3, NAN, -INFINITY, 6};
  EXPECT_TRUE(CheckFinite(*rows, 0, values, 1, false).ok());
  EXPECT_TRUE(CheckFinite(*rows, 0, values, 2, true).ok());
  EXPECT_EQ(CheckFinite(*rows, 4, values, 2, false).message(),
            "t: row 5: column 2 is NaN; a finite number is needed here");
  EXPECT_EQ(CheckFinite(*rows, 4, values, 3, true).message(),
            "t: row 6: column 1 is infinite; a number or NaN is needed here");
}

TEST(ElementsTest, CombinesTablesOfTheSameShape) {
  const auto two = Numbers("two", {1, 2}), three = Numbers("three", {3, 4, 5});
  const std::shared_ptr<const RowSource> pairs =
      TensorRows("pairs", TensorOf({2, 2})).value();
  EXPECT_EQ(JoinColumns("j", {two, three}).status().message(),
            "three: 3 rows, but two has 2");
  EXPECT_EQ(ConcatenateRows("c", {two, pairs}).status().message(),
            "pairs: 2 numbers per row, but two has 1");
  EXPECT_EQ(*ConcatenateRows("c", {two}), two);
  const auto both = ConcatenateRows("c", {two, Numbers("none", {}), three});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ((*both)->name(), "c");
  EXPECT_EQ((*both)->rows(), 5);
  EXPECT_TRUE(*(*both)->Integral());
  EXPECT_EQ((*both)->Where(1), "two: row 1");
  EXPECT_EQ((*both)->Where(2), "three: row 0");
  EXPECT_EQ((*both)->Where(4), "three: row 2");
  for (const int64_t step : {1, 2, 3, 4, 5, 9}) {
    std::vector<int64_t> all, block(9);
    const auto reader = (*both)->Open().value();
    while (true) {
      const int64_t rows = reader->ReadIntegers(step, block.data()).value();
      if (rows == 0) break;
      all.insert(all.end(), block.begin(), block.begin() + rows);
    }
    EXPECT_THAT(all, ElementsAre(1, 2, 3, 4, 5)) << step;
  }
  const auto joined = JoinColumns("j", {two, pairs, two});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)->width(), 4);
  EXPECT_EQ((*joined)->Where(1), "j: row 1");
  EXPECT_FALSE(*(*joined)->Integral());
  EXPECT_TRUE(*(*JoinColumns("j", {two, two}))->Integral());
}

}  // namespace
}  // namespace millrace
