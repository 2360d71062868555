// SPDX-License-Identifier: Apache-2.0
#include "common/wire/job_proto.h"

#include <gtest/gtest.h>

#include "job.pb.h"
#include "sampler.pb.h"

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

}  // namespace
}  // namespace millrace
