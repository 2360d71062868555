// SPDX-License-Identifier: Apache-2.0
#include "common/wire/job_proto.h"

#include <gtest/gtest.h>

#include "common/graph/store.h"
#include "job.pb.h"
#include "sampler.pb.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

JobSpec ExampleJob() {
  JobSpec spec;
  spec.seed = uint64_t{1} << 63;
  spec.seed_type = "paper";
  spec.split = "valid";
  spec.fanouts = {15, -1, 0};
  spec.relation_fanouts["a__writes__b"] = {1, 2, 3};
  spec.batch_size = 77;
  spec.shuffle = false;
  spec.seed_order = SeedOrder::kLocal;
  spec.drop_last = true;
  spec.replace = true;
  spec.disjoint = true;
  spec.direction = Direction::kOut;
  spec.train_graph = "fold0";
  return spec;
}

TEST(JobProtoTest, JobsComeBackAsTheyWere) {
  for (const JobSpec& spec : {JobSpec(), ExampleJob()}) {
    v1::Job proto;
    JobToProto(spec, proto);
    const auto back = JobFromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec);
  }
}

TEST(JobProtoTest, RefusesUnknownEnumerators) {
  v1::Job job;
  job.set_direction(static_cast<v1::Job::Direction>(9));
  EXPECT_TRUE(absl::IsInvalidArgument(JobFromProto(job).status()));
  v1::Columns columns;
  columns.set_feature_dtype(static_cast<v1::DType>(99));
  EXPECT_TRUE(absl::IsInvalidArgument(ColumnsFromProto(columns).status()));
}

TEST(JobProtoTest, RefusesARelationNamedTwice) {
  v1::Job job;
  job.add_relation_fanouts()->set_relation("a__b__c");
  job.add_relation_fanouts()->set_relation("a__b__c");
  EXPECT_TRUE(absl::IsInvalidArgument(JobFromProto(job).status()));
}

TEST(JobProtoTest, ColumnsComeBackAsTheyWere) {
  Columns columns;
  columns.features = false;
  columns.original_ids = columns.edge_ids = columns.degrees = true;
  columns.labels = LabelRows::kAll;
  columns.feature_dtype = DType::kBFloat16;
  v1::Columns proto;
  ColumnsToProto(columns, proto);
  const auto back = ColumnsFromProto(proto);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, columns);
}

class ManifestProtoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto graph = testing::RichGraph();
    const auto path = testing::TestDirectory("manifest_proto") / "store";
    ASSERT_TRUE(
        testing::BuildStore(graph, 3, testing::SpreadAssignment(graph, 3), path)
            .ok());
    auto store = Store::Open(path, {1});
    ASSERT_TRUE(store.ok()) << store.status();
    manifest_ = (*store)->manifest();
    ManifestToProto(manifest_, proto_);
  }

  Manifest manifest_;
  v1::DescribeReply proto_;
};

TEST_F(ManifestProtoTest, ManifestsComeBackAsTheyWere) {
  const auto back = ManifestFromProto(proto_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->schema, manifest_.schema);
  EXPECT_EQ(back->books, manifest_.books);
  EXPECT_EQ(back->splits, manifest_.splits);
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

}  // namespace
}  // namespace millrace
