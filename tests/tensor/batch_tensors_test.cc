// SPDX-License-Identifier: Apache-2.0
#include "client/tensor/batch_tensors.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

TEST(ViewAsTensorTest, KeepsDtypeShapeAndMemory) {
  const std::vector<std::pair<DType, at::ScalarType>> types = {
      {DType::kUint8, at::kByte},     {DType::kInt8, at::kChar},
      {DType::kInt32, at::kInt},      {DType::kUint32, at::kInt},
      {DType::kInt64, at::kLong},     {DType::kUint64, at::kLong},
      {DType::kFloat16, at::kHalf},   {DType::kFloat32, at::kFloat},
      {DType::kFloat64, at::kDouble}, {DType::kBFloat16, at::kBFloat16}};
  for (const auto& [dtype, type] : types) {
    const Array array = Array::Allocate(dtype, {3, 2});
    const auto tensor = ViewAsTensor(array);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->scalar_type(), type);
    EXPECT_EQ(tensor->sizes(), at::IntArrayRef({3, 2}));
    EXPECT_EQ(tensor->const_data_ptr(), array.data());
  }
}

TEST(ViewAsTensorTest, OutlivesTheArray) {
  auto owner =
      std::make_shared<std::vector<int64_t>>(std::vector<int64_t>{4, 5, 6});
  const std::weak_ptr<std::vector<int64_t>> alive = owner;
  at::Tensor tensor;
  {
    const int64_t* data = owner->data();
    const Array array =
        Array::Borrow(DType::kInt64, {3}, data, std::move(owner));
    tensor = ViewAsTensor(array).value();
  }
  EXPECT_FALSE(alive.expired());
  EXPECT_TRUE(tensor.equal(at::tensor({4, 5, 6}, at::kLong)));
  tensor = at::Tensor();
  EXPECT_TRUE(alive.expired());
}

TEST(ViewAsTensorTest, AbsentArraysHaveNone) {
  EXPECT_EQ(ViewAsTensor(Array()).status(),
            absl::InvalidArgumentError("an absent array has no tensor"));
  at::Tensor tensor = at::tensor({1});
  EXPECT_TRUE(ViewIfPresent(Array(), tensor).ok());
  EXPECT_EQ(tensor.item().toLong(), 1);
  EXPECT_TRUE(
      ViewIfPresent(Array::Adopt(std::vector<int64_t>{7}), tensor).ok());
  EXPECT_EQ(tensor.item().toLong(), 7);
}

Array Numbers(std::vector<int64_t> values) {
  return Array::Adopt(std::move(values));
}

TEST(AsFloatTest, ConvertsOnlyOtherTypes) {
  const at::Tensor floats = at::tensor({0.5, -2.0}, at::kFloat);
  EXPECT_TRUE(AsFloat(floats).is_same(floats));
  EXPECT_TRUE(AsFloat(floats.to(at::kHalf)).equal(floats));
  EXPECT_FALSE(AsFloat(at::Tensor()).defined());
}

TEST(ToTensorsTest, ViewsEveryColumn) {
  Batch batch;
  batch.nodes.resize(2);
  batch.nodes[1].hop_offsets = {0, 1, 3};
  batch.nodes[1].feature = Numbers({1, 1});
  batch.nodes[1].label = Numbers({2, 2});
  batch.nodes[1].degree = Numbers({3, 3});
  batch.nodes[1].original_id = Numbers({4, 4});
  batch.edges.resize(2);
  batch.edges[0].indptr = Numbers({5, 5});
  batch.edges[0].neighbor = Numbers({6, 6});
  batch.edges[0].edge_id = Numbers({7, 7});
  batch.edges[0].feature = Numbers({8, 8});
  batch.seed_to_local = Numbers({9, 9});
  const auto made = ToTensors(batch);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto expect = [](const at::Tensor& tensor, int64_t value) {
    ASSERT_TRUE(tensor.defined()) << value;
    EXPECT_TRUE(tensor.equal(at::tensor({value, value}, at::kLong))) << value;
  };
  ASSERT_EQ(made->nodes.size(), 2u);
  EXPECT_EQ(made->nodes[1].hop_offsets, (std::vector<uint32_t>{0, 1, 3}));
  expect(made->nodes[1].feature, 1);
  expect(made->nodes[1].label, 2);
  expect(made->nodes[1].degree, 3);
  expect(made->nodes[1].original_id, 4);
  ASSERT_EQ(made->edges.size(), 2u);
  expect(made->edges[0].indptr, 5);
  expect(made->edges[0].neighbor, 6);
  expect(made->edges[0].edge_id, 7);
  expect(made->edges[0].feature, 8);
  expect(made->seed_to_local, 9);
  EXPECT_FALSE(made->nodes[0].feature.defined());
  EXPECT_FALSE(made->edges[1].edge_id.defined());
}

// The arrays are never read, so their memory does not matter.
TEST(ToTensorsTest, LocalIdsMustFit32Bits) {
  constexpr uint32_t kMost = (uint32_t{1} << 31) - 1;
  Batch batch;
  batch.nodes.resize(1);
  batch.nodes[0].hop_offsets = {0, kMost};
  EXPECT_TRUE(ToTensors(batch).ok());
  batch.nodes[0].hop_offsets = {0, kMost + 1};
  EXPECT_EQ(ToTensors(batch).status(),
            absl::OutOfRangeError(
                "the batch has 2147483648 nodes of one type, but local ids in "
                "tensors end at 2^31 - 1; use smaller batches or fanouts"));
  batch.nodes.clear();
  batch.edges.resize(1);
  const auto edges = [&](int64_t count) {
    static const uint8_t kByte = 0;
    batch.edges[0].neighbor =
        Array::Borrow(DType::kUint8, {count}, &kByte, nullptr);
  };
  edges(kMost);
  EXPECT_TRUE(ToTensors(batch).ok());
  edges(int64_t{kMost} + 1);
  EXPECT_EQ(ToTensors(batch).status(),
            absl::OutOfRangeError(
                "the batch has 2147483648 edges of one relation, but local ids "
                "in tensors end at 2^31 - 1; use smaller batches or fanouts"));
}

TEST(NodeIdsTest, AreWideWhateverIsStored) {
  NodeBlock block;
  block.id = Array::Adopt(std::vector<uint32_t>{7, 4000000000});
  EXPECT_TRUE(NodeIds(block).value().equal(
      at::tensor({int64_t{7}, int64_t{4000000000}}, at::kLong)));
  block.id = Array::Adopt(std::vector<uint64_t>{uint64_t{1} << 33});
  EXPECT_TRUE(
      NodeIds(block).value().equal(at::tensor({int64_t{1} << 33}, at::kLong)));
}

}  // namespace
}  // namespace millrace
