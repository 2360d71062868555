// SPDX-License-Identifier: Apache-2.0
// Copies of the tensors of pickles that were made by hand.
#include "client/train/run/tensor_dict.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace millrace::testing {
namespace {

// A dictionary of tensors over the floats 0, 1, ... 11.
class TensorDictTest : public ::testing::Test {
 protected:
  TensorDictTest() {
    for (int i = 0; i < 12; ++i) floats_.push_back(static_cast<float>(i));
    dict_.kind = PickleKind::kDict;
  }

  static PickleValue Text(const char* text) {
    return {.kind = PickleKind::kText, .bytes = text};
  }
  // A tensor of float32 that begins at a byte of the floats.
  PickleValue Tensor(size_t byte, std::vector<int64_t> sizes,
                     std::vector<int64_t> strides,
                     ElementType type = ElementType::kFloat32) const {
    PickleValue value;
    value.kind = PickleKind::kTensor;
    value.tensor.format.type = type;
    value.tensor.sizes = std::move(sizes);
    value.tensor.strides = std::move(strides);
    value.tensor.data = reinterpret_cast<const char*>(floats_.data()) + byte;
    return value;
  }
  void Add(PickleValue key, PickleValue value) {
    for (PickleValue* each : {&key, &value}) {
      values_.push_back(std::move(*each));
      dict_.items.push_back(&values_.back());
    }
  }
  absl::StatusOr<std::vector<NamedTensor>> Copies() const {
    return CopyTensors("a.pt", dict_);
  }
  std::string Refusal() const {
    const absl::Status status = Copies().status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  std::vector<float> floats_;
  std::deque<PickleValue> values_;
  PickleValue dict_;
};

TEST_F(TensorDictTest, CopiesHaveTheStridesOfTheFile) {
  Add(Text("matrix"), Tensor(4, {2, 3}, {1, 2}));
  Add(Text("scalar"), Tensor(36, {}, {}));
  const auto copies = Copies();
  ASSERT_TRUE(copies.ok()) << copies.status();
  floats_.assign(12, -1);  // The copies do not depend on the file.
  ASSERT_EQ(copies->size(), 2u);
  EXPECT_EQ((*copies)[0].name, "matrix");
  EXPECT_TRUE((*copies)[0].tensor.equal(
      at::tensor({1., 3., 5., 2., 4., 6.}, at::kFloat).view({2, 3})));
  EXPECT_EQ((*copies)[0].tensor.strides(), at::IntArrayRef({1, 2}));
  EXPECT_EQ((*copies)[1].name, "scalar");
  EXPECT_EQ((*copies)[1].tensor.dim(), 0);
  EXPECT_EQ((*copies)[1].tensor.item().toFloat(), 9);
}

TEST_F(TensorDictTest, TensorsThatShareBytesShareCopies) {
  Add(Text("end"), Tensor(16, {4}, {1}));
  Add(Text("whole"), Tensor(0, {6}, {1}));
  Add(Text("inner"), Tensor(4, {2}, {1}));
  Add(Text("apart"), Tensor(32, {2}, {1}));
  const auto copies = Copies();
  ASSERT_TRUE(copies.ok()) << copies.status();
  const at::Tensor end = (*copies)[0].tensor, whole = (*copies)[1].tensor,
                   inner = (*copies)[2].tensor, apart = (*copies)[3].tensor;
  EXPECT_TRUE(end.equal(at::tensor({4., 5., 6., 7.}, at::kFloat)));
  EXPECT_TRUE(whole.equal(at::arange(6, at::kFloat)));
  EXPECT_TRUE(inner.equal(at::tensor({1., 2.}, at::kFloat)));
  EXPECT_TRUE(apart.equal(at::tensor({8., 9.}, at::kFloat)));
  EXPECT_TRUE(end.is_alias_of(whole));
  EXPECT_TRUE(inner.is_alias_of(whole));
  // It begins where the others end.
  EXPECT_FALSE(apart.is_alias_of(whole));
  EXPECT_EQ(whole.storage().nbytes(), 8 * sizeof(float));
  whole[5].fill_(50);
  EXPECT_EQ(end[1].item().toFloat(), 50);
}

TEST_F(TensorDictTest, ATensorWithoutElementsHasItsShape) {
  Add(Text("none"), Tensor(8, {3, 0}, {1, 1}));
  Add(Text("some"), Tensor(0, {4}, {1}));
  const auto copies = Copies();
  ASSERT_TRUE(copies.ok()) << copies.status();
  EXPECT_EQ((*copies)[0].tensor.sizes(), at::IntArrayRef({3, 0}));
  EXPECT_TRUE((*copies)[1].tensor.equal(at::arange(4, at::kFloat)));
}

TEST_F(TensorDictTest, RefusesATensorThatBeginsWithinAnElement) {
  Add(Text("whole"), Tensor(0, {6}, {1}));
  Add(Text("odd"), Tensor(6, {1}, {1}));
  EXPECT_EQ(Refusal(),
            "a.pt: \"odd\": it begins within an element of another tensor\n"
            "save it again after .clone()");
}

// Half an element of float32 is one of int16.
TEST_F(TensorDictTest, TensorsOfDifferentTypesMayShareBytes) {
  Add(Text("whole"), Tensor(0, {6}, {1}));
  Add(Text("halves"), Tensor(6, {1}, {1}, ElementType::kInt16));
  const auto copies = Copies();
  ASSERT_TRUE(copies.ok()) << copies.status();
  EXPECT_EQ((*copies)[1].tensor.scalar_type(), at::kShort);
  EXPECT_EQ((*copies)[1].tensor.item().toLong(), 0x3f80);  // of 1.0f
}

TEST_F(TensorDictTest, NamesWhatIsNoTensorByName) {
  dict_.kind = PickleKind::kList;
  EXPECT_EQ(Refusal(), "a.pt: it holds a list, not tensors by name");
  dict_.kind = PickleKind::kDict;
  EXPECT_TRUE(Copies().value().empty());
  Add(Text("epoch"), {.kind = PickleKind::kInteger, .integer = 3});
  EXPECT_EQ(Refusal(), "a.pt: \"epoch\" is an integer, not a tensor");
  dict_.items.clear();
  Add({.kind = PickleKind::kInteger}, Tensor(0, {1}, {1}));
  EXPECT_EQ(Refusal(), "a.pt: a key is an integer, not the name of a tensor");
  dict_.items.clear();
  Add(Text("a"), Tensor(0, {1}, {1}));
  Add(Text("b"), Tensor(0, {1}, {1}));
  Add(Text("a"), Tensor(4, {1}, {1}));
  EXPECT_EQ(Refusal(), "a.pt: two of its tensors are named \"a\"");
}

TEST_F(TensorDictTest, ReadsRealNumbersAlone) {
  for (const at::ScalarType type :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong,
        at::kHalf, at::kFloat, at::kDouble, at::kBFloat16}) {
    EXPECT_TRUE(IsReadFromFiles(type)) << c10::toString(type);
  }
  for (const at::ScalarType type : {at::kComplexFloat, at::kQInt8}) {
    EXPECT_FALSE(IsReadFromFiles(type)) << c10::toString(type);
  }
}

}  // namespace
}  // namespace millrace::testing
