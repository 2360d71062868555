// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch_arrays.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "common/sample/digest.h"

namespace millrace {
namespace {

Schema OneRelation() {
  Schema schema;
  schema.node_types = {{.name = "node", .count = 9}};
  schema.relations = {{.src = 0, .name = "to", .dst = 0}};
  return schema;
}

// A batch that has every array, three rows of each.
Batch FullBatch(SeedKind seed_kind) {
  Batch batch;
  batch.seed_kind = seed_kind;
  batch.hops = 1;
  batch.nodes.resize(1);
  batch.edges.resize(1);
  for (const BatchArray& array : BatchArrays()) {
    array.Set(batch, 0, Array::Adopt(std::vector<uint32_t>{5, 6, 7}));
  }
  batch.nodes[0].hop_offsets = {0, 2, 3};
  batch.edges[0].indptr = Array::Adopt(std::vector<uint32_t>{0, 1, 3});
  batch.edges[0].hop = Array::Adopt(std::vector<uint8_t>{1, 0, 1});
  return batch;
}

// The batch with one array's second element changed.
Batch WithChange(const Batch& batch, const BatchArray& array) {
  const Array before = array.Get(batch, 0);
  Array after = Array::Allocate(before.dtype(), before.shape());
  std::memcpy(after.mutable_data(), before.data(), before.total_bytes());
  after.mutable_data()[ItemBytes(before.dtype())] ^= std::byte{1};
  Batch changed = batch;
  array.Set(changed, 0, after);
  return changed;
}

TEST(BatchArraysTest, DescribesEachKindOnce) {
  std::set<ArrayKind> kinds;
  std::set<std::string_view> names;
  for (const BatchArray& array : BatchArrays()) {
    kinds.insert(array.kind);
    names.insert(array.name);
    EXPECT_EQ(&Describe(array.kind), &array);
    EXPECT_EQ(ArrayKindName(array.kind), array.name);
  }
  EXPECT_EQ(kinds.size(), BatchArrays().size());
  EXPECT_EQ(names.size(), BatchArrays().size());
}

TEST(BatchArraysTest, GroupsFollowEachOther) {
  const BatchArray* next = BatchArrays().data();
  for (const ArrayGroup group :
       {ArrayGroup::kSeeds, ArrayGroup::kNodes, ArrayGroup::kEdges,
        ArrayGroup::kNodeColumns, ArrayGroup::kNodeFeatures,
        ArrayGroup::kEdgeFeatures}) {
    const std::span<const BatchArray> arrays = ArraysOf(group);
    EXPECT_FALSE(arrays.empty());
    EXPECT_EQ(arrays.data(), next);
    next += arrays.size();
    for (const BatchArray& array : arrays) {
      EXPECT_EQ(array.is_column(), group >= ArrayGroup::kNodeColumns);
    }
  }
  EXPECT_EQ(next, BatchArrays().data() + BatchArrays().size());
}

TEST(BatchArraysTest, GetReturnsWhatWasSet) {
  for (const BatchArray& array : BatchArrays()) {
    Batch batch;
    batch.nodes.resize(2);
    batch.edges.resize(2);
    const int index =
        CountOf(array.group, batch.nodes.size(), batch.edges.size()) - 1;
    array.Set(batch, index, Array::Adopt(std::vector<uint32_t>{1, 2, 3}));
    EXPECT_EQ(array.Get(batch, index).IntegerAt(2), 3) << array.name;
    for (const BatchArray& other : BatchArrays()) {
      if (&other == &array) continue;
      const int last =
          CountOf(other.group, batch.nodes.size(), batch.edges.size()) - 1;
      EXPECT_EQ(other.Get(batch, last).rows(), 0) << other.name;
    }
  }
}

// Section 7 of docs/determinism.md: batches of edge seeds have no node labels,
// and other batches no pairs.
TEST(BatchArraysTest, DigestsCoverExactlyTheMarkedArrays) {
  for (const SeedKind kind :
       {SeedKind::kNode, SeedKind::kEdge, SeedKind::kGraph}) {
    const bool edges = kind == SeedKind::kEdge;
    const Batch batch = FullBatch(kind);
    const Sha256 digest = DigestBatch(batch, OneRelation());
    for (const BatchArray& array : BatchArrays()) {
      bool depends = array.digest != DigestRule::kNone;
      if (array.digest == DigestRule::kEdgeSeeds) depends = edges;
      if (array.kind == ArrayKind::kNodeLabel) depends = !edges;
      // These edges have their own hops; labels end with the first hop.
      if (array.kind == ArrayKind::kHopOffsets) depends = !edges;
      const Batch changed = WithChange(batch, array);
      EXPECT_EQ(DigestBatch(changed, OneRelation()) != digest, depends)
          << array.name << ", seeds of kind " << static_cast<int>(kind);
    }
  }
}

}  // namespace
}  // namespace millrace
