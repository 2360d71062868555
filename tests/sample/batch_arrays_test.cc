// SPDX-License-Identifier: Apache-2.0
#include "common/sample/batch_arrays.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/sample/digest.h"
#include "common/sample/resolve_job.h"

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

// A store of one node type and one relation with a split of edges.
class SentArraysTest : public ::testing::Test {
 protected:
  SentArraysTest() {
    manifest_.schema = OneRelation();
    EdgeSplitInfo& split = manifest_.edge_splits.emplace_back();
    split.name = "pairs";
    job_.spec.split = "pairs";
    job_.seed_relation = 0;
    columns_.features = false;
    columns_.labels = LabelRows::kNone;
  }

  // The names of the arrays of a stream, except those of every batch.
  std::set<std::string_view> Sent(bool explicit_seeds = false,
                                  bool given_negatives = false) const {
    const StreamContent content = {manifest_, job_, columns_, explicit_seeds,
                                   given_negatives};
    std::set<std::string_view> names;
    for (const BatchArray& array : BatchArrays()) {
      if (array.row(content, 0).present()) names.insert(array.name);
    }
    for (const char* always :
         {"SEED_TO_LOCAL", "HOP_OFFSETS", "NODE_ID", "INDPTR", "NEIGHBOR"}) {
      EXPECT_EQ(names.erase(always), 1u) << always;
    }
    return names;
  }

  Manifest manifest_;
  ResolvedJob job_;
  Columns columns_;
};

using Names = std::set<std::string_view>;

TEST_F(SentArraysTest, ThoseOfNodesDependOnTheJob) {
  EXPECT_EQ(Sent(), Names({"SEED"}));
  EXPECT_EQ(Sent(true), Names());
  job_.spec.temporal = TemporalStrategy::kUniform;
  EXPECT_EQ(Sent(), Names({"SEED", "SEED_TIME"}));
  EXPECT_EQ(Sent(true), Names());
  job_.spec.temporal = TemporalStrategy::kNone;
  job_.spec.disjoint = true;
  EXPECT_EQ(Sent(), Names({"SEED", "TREE"}));
  job_.spec.disjoint = false;
  job_.spec.method = SampleMethod::kWalk;
  EXPECT_EQ(Sent(), Names({"SEED", "WALKS", "EDGE_HOP"}));
  job_.spec.method = SampleMethod::kPpr;
  EXPECT_EQ(Sent(), Names({"SEED", "VISITS"}));
}

TEST_F(SentArraysTest, ThoseOfPairsDependOnTheirSplit) {
  job_.spec.seed_kind = SeedKind::kEdge;
  const Names pairs = {"SEED", "SEED_DST", "DST_LOCAL"};
  const auto with = [&](std::initializer_list<std::string_view> more) {
    Names names = pairs;
    names.insert(more.begin(), more.end());
    return names;
  };
  EXPECT_EQ(Sent(), pairs);
  EXPECT_EQ(Sent(true), Names({"DST_LOCAL"}));
  EXPECT_EQ(Sent(true, true), Names({"DST_LOCAL", "NEGATIVE_LOCAL"}));
  EdgeSplitInfo& split = manifest_.edge_splits[0];
  split.has_edge_id = true;
  EXPECT_EQ(Sent(), pairs);
  split.has_time = true;
  EXPECT_EQ(Sent(), with({"SEED_TIME"}));
  split.has_time = false;
  split.has_edge_type = true;
  EXPECT_EQ(Sent(), with({"SEED_EDGE_TYPE"}));
  EXPECT_EQ(Sent(true), Names({"DST_LOCAL"}));
  split.has_edge_type = false;
  split.label = {DType::kFloat32, {}};
  EXPECT_EQ(Sent(), with({"SEED_LABEL"}));
  split.label = {};
  split.negatives = 3;
  EXPECT_EQ(Sent(), with({"NEGATIVE_DST", "NEGATIVE_LOCAL"}));
  job_.spec.split = "others";
  EXPECT_EQ(Sent(), Names({"DST_LOCAL"}));
}

TEST_F(SentArraysTest, DrawnNegativesComeWithTheirNumber) {
  job_.spec.seed_kind = SeedKind::kEdge;
  job_.spec.negatives = {NegativeMode::kTriplet, 1};
  EXPECT_EQ(Sent(), Names({"SEED", "SEED_DST", "DST_LOCAL", "NEGATIVE_DST",
                           "NEGATIVE_LOCAL", "FALSE_NEGATIVES"}));
  job_.spec.negatives = {NegativeMode::kBinary, 1};
  EXPECT_EQ(Sent(), Names({"SEED", "SEED_DST", "DST_LOCAL", "NEGATIVE_SRC",
                           "NEGATIVE_SRC_LOCAL", "NEGATIVE_DST",
                           "NEGATIVE_LOCAL", "FALSE_NEGATIVES"}));
}

TEST_F(SentArraysTest, ColumnsAreSentOnRequest) {
  manifest_.schema.node_types[0].feature = {DType::kFloat32, {4}};
  manifest_.schema.node_types[0].label = {DType::kInt64, {}};
  manifest_.schema.relations[0].feature = {DType::kFloat16, {2}};
  EXPECT_EQ(Sent(), Names({"SEED"}));
  struct Case {
    bool Columns::*member;
    Names names;
  };
  for (const Case& example : std::initializer_list<Case>{
           {&Columns::features, {"NODE_FEATURE"}},
           {&Columns::edge_features, {"FEATURE_ROW", "EDGE_FEATURE"}},
           {&Columns::original_ids, {"ORIGINAL_ID"}},
           {&Columns::edge_ids, {"EDGE_ID"}},
           {&Columns::degrees, {"DEGREE"}}}) {
    columns_.*example.member = true;
    Names names = example.names;
    names.insert("SEED");
    EXPECT_EQ(Sent(), names);
    columns_.*example.member = false;
  }
  for (const LabelRows labels : {LabelRows::kSeeds, LabelRows::kAll}) {
    columns_.labels = labels;
    EXPECT_EQ(Sent(), Names({"SEED", "NODE_LABEL"}));
  }
  columns_.features = true;
  columns_.feature_dtype = DType::kFloat16;
  const StreamContent content = {manifest_, job_, columns_};
  EXPECT_EQ(Describe(ArrayKind::kNodeFeature).row(content, 0),
            (ColumnSpec{DType::kFloat16, {4}}));
}

}  // namespace
}  // namespace millrace
