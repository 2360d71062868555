// SPDX-License-Identifier: Apache-2.0
#include "common/wire/manifest_proto.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/graph/store.h"
#include "sampler.pb.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

class ManifestProtoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::TestGraph graph = testing::RichGraph();
    EdgeSplitColumns& pairs = graph.edge_splits.emplace_back();
    pairs.relation = 1;
    pairs.name = "pairs";
    pairs.src = Array::Adopt(std::vector<int64_t>{0, 1});
    pairs.dst = Array::Adopt(std::vector<int64_t>{2, 3});
    pairs.time = Array::Adopt(std::vector<int64_t>{4, 5});
    pairs.label = Array::Adopt(std::vector<float>{6, 7});
    pairs.negative = Array::Adopt(std::vector<int64_t>{0, 1, 2, 3}, {2, 2});
    manifest_ = testing::TestStore(graph, 3).Open()->manifest();
    ManifestToProto(manifest_, proto_);
  }

  Manifest manifest_;
  v1::DescribeReply proto_;
};

TEST_F(ManifestProtoTest, ManifestsRoundTrip) {
  const auto back = ManifestFromProto(proto_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->schema, manifest_.schema);
  EXPECT_EQ(back->books, manifest_.books);
  EXPECT_EQ(back->splits, manifest_.splits);
  EXPECT_EQ(back->edge_splits, manifest_.edge_splits);
  EXPECT_EQ(back->neighbor_original_ids, manifest_.neighbor_original_ids);
  EXPECT_EQ(back->fingerprint, manifest_.fingerprint);
  EXPECT_EQ(back->dataset_fingerprint, manifest_.dataset_fingerprint);
  EXPECT_EQ(back->uuid, manifest_.uuid);
  EXPECT_EQ(back->sampling_version, manifest_.sampling_version);
}

TEST_F(ManifestProtoTest, RefusesNumbersThatDisagree) {
  const auto refused = [this](auto change) {
    v1::DescribeReply proto = proto_;
    change(proto);
    return absl::IsInvalidArgument(ManifestFromProto(proto).status());
  };
  EXPECT_TRUE(refused([](auto& p) { p.set_parts(2); }));
  EXPECT_TRUE(refused([](auto& p) { p.set_parts(0); }));
  EXPECT_TRUE(refused([](auto& p) { p.set_parts(1u << 31); }));
  EXPECT_TRUE(refused([](auto& p) { p.clear_node_types(); }));
  EXPECT_TRUE(refused([](auto& p) {
    p.mutable_node_types(0)->set_offsets(1, uint64_t{1} << 60);
  }));
  EXPECT_TRUE(refused([](auto& p) { p.mutable_relations(0)->set_dst(1000); }));
  EXPECT_TRUE(refused([](auto& p) {
    p.mutable_node_types(0)->set_name(p.node_types(1).name());
  }));
  EXPECT_TRUE(refused(
      [](auto& p) { p.mutable_node_types(0)->set_name("../../else"); }));
  EXPECT_TRUE(refused([](auto& p) { p.mutable_splits(0)->set_count(1000); }));
  EXPECT_TRUE(refused([](auto& p) {
    auto* feature = p.mutable_node_types(0)->mutable_feature();
    feature->add_row_shape(uint64_t{1} << 40);
  }));
}

// The graph has 5 authors and 7 papers, in 3 partitions.
TEST_F(ManifestProtoTest, ErrorsNameWhatDisagrees) {
  using Proto = v1::DescribeReply;
  constexpr uint64_t kHuge = uint64_t{1} << 63;
  struct Case {
    std::function<void(Proto&)> change;
    std::string message;
  };
  const std::string limits =
      " node types; expected 1 to 65535 partitions and at least 1 node type";
  const std::vector<Case> cases = {
      {[](Proto& p) { p.set_parts(0); },
       "the store has 0 partitions and 2" + limits},
      {[](Proto& p) { p.set_parts(65536); },
       "the store has 65536 partitions and 2" + limits},
      {[](Proto& p) { p.clear_node_types(); },
       "the store has 3 partitions and 0" + limits},
      {[](Proto& p) { p.set_parts(65535); },
       "offsets of node type author do not divide its 5 nodes into 65535 "
       "partitions"},
      {[](Proto& p) { p.set_parts(2); },
       "offsets of node type author do not divide its 5 nodes into 2 "
       "partitions"},
      {[](Proto& p) { p.mutable_node_types(1)->set_offsets(0, 1); },
       "offsets of node type paper do not divide its 7 nodes into 3 "
       "partitions"},
      {[](Proto& p) { p.mutable_node_types(1)->set_offsets(1, 7); },
       "offsets of node type paper do not divide its 7 nodes into 3 "
       "partitions"},
      {[](Proto& p) { p.mutable_node_types(1)->set_offsets(3, 6); },
       "offsets of node type paper do not divide its 7 nodes into 3 "
       "partitions"},
      {[](Proto& p) { p.mutable_node_types(0)->set_count(kHuge); },
       "node type author has 9223372036854775808 nodes"},
      {[](Proto& p) {
         p.mutable_node_types(0)->mutable_feature()->set_dtype(
             static_cast<v1::DType>(99));
       },
       "unknown column dtype 99"},
      {[](Proto& p) {
         p.mutable_node_types(1)->mutable_feature()->set_row_shape(
             0, (1 << 26) + 1);
       },
       "column of paper has an unreadable shape"},
      {[](Proto& p) {
         p.mutable_node_types(1)->mutable_label()->add_row_shape(1 << 26);
       },
       "column of paper has an unreadable shape"},
      {[](Proto& p) {
         auto* label = p.mutable_node_types(1)->mutable_label();
         label->clear_row_shape();
         for (int i = 0; i < 3; ++i) label->add_row_shape(1);
       },
       "column of paper has an unreadable shape"},
      {[](Proto& p) { p.mutable_relations(0)->set_src(2); },
       "unreadable relation writes"},
      {[](Proto& p) { p.mutable_relations(1)->set_dst(2); },
       "unreadable relation cites"},
      {[](Proto& p) { p.mutable_relations(1)->set_edge_count(kHuge); },
       "unreadable relation cites"},
      {[](Proto& p) {
         p.mutable_relations(1)->set_time(
             static_cast<Proto::Relation::ListTime>(9));
       },
       "unreadable relation cites"},
      {[](Proto& p) {
         p.mutable_relations(0)->mutable_feature()->add_row_shape(1 << 26);
       },
       "column of writes has an unreadable shape"},
      {[](Proto& p) { p.mutable_node_types(0)->set_name("paper"); },
       "'paper' occurs twice"},
      {[](Proto& p) { p.mutable_splits(0)->set_node_type(2); },
       "counts of split train disagree"},
      {[](Proto& p) { p.mutable_splits(0)->set_count(4); },
       "counts of split train disagree"},
      {[](Proto& p) { p.mutable_splits(1)->add_part_counts(0); },
       "counts of split test disagree"},
      {[](Proto& p) {
         auto* split = p.mutable_splits(0);
         split->set_part_counts(0, kHuge);
         split->set_part_counts(1, kHuge);
         split->set_part_counts(2, 3);
       },
       "counts of split train disagree"},
      {[](Proto& p) {
         auto* split = p.mutable_splits(0);
         split->set_part_counts(0, kHuge);
         split->set_part_counts(1, 0);
         split->set_part_counts(2, 0);
         split->set_count(kHuge);
       },
       "counts of split train disagree"},
      {[](Proto& p) { p.mutable_edge_splits(0)->set_relation(3); },
       "the counts of edge split 'pairs' are inconsistent"},
      {[](Proto& p) { p.mutable_edge_splits(0)->set_count(3); },
       "the counts of edge split 'pairs' are inconsistent"},
      {[](Proto& p) {
         p.mutable_edge_splits(0)->set_label(static_cast<v1::DType>(99));
       },
       "unknown edge split label 99"}};
  for (const Case& example : cases) {
    v1::DescribeReply proto = proto_;
    example.change(proto);
    const absl::Status status = ManifestFromProto(proto).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), example.message);
  }
}

// Older servers do not send it.
TEST_F(ManifestProtoTest, TheDatasetIsTheStoreByDefault) {
  proto_.set_dataset_fingerprint("");
  EXPECT_EQ(ManifestFromProto(proto_)->dataset_fingerprint,
            manifest_.fingerprint);
  proto_.set_dataset_fingerprint("abc");
  EXPECT_EQ(ManifestFromProto(proto_)->dataset_fingerprint, "abc");
}

}  // namespace
}  // namespace millrace
