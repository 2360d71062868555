// SPDX-License-Identifier: Apache-2.0
#include "common/wire/job_proto.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/sample/job_options.h"
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
  spec.seed_kind = SeedKind::kEdge;
  spec.method = SampleMethod::kPpr;
  spec.weighted = true;
  spec.temporal = TemporalStrategy::kLast;
  spec.walks = 7;
  spec.walk_length = 9;
  spec.restart = 0.5;
  spec.metapath = {"a__x__b", "b__y__a"};
  spec.walk_p = 0.25;
  spec.walk_q = 3;
  spec.negatives = {NegativeMode::kTriplet, 4};
  spec.exclude = ExcludeSeedEdges::kReverse;
  return spec;
}

TEST(JobProtoTest, JobsRoundTrip) {
  for (const JobSpec& spec : {JobSpec(), ExampleJob()}) {
    v1::Job proto;
    JobToProto(spec, proto);
    const auto back = JobFromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, spec);
  }
}

// Each field of the message is that of a row of the table, or belongs to one.
TEST(JobProtoTest, TheTableHasEveryField) {
  std::set<std::string> fields = {"relation_fanouts", "negative_amount"};
  for (const JobOption& option : JobOptions()) {
    EXPECT_TRUE(fields.insert(std::string(option.name)).second);
  }
  const google::protobuf::Descriptor* job = v1::Job::descriptor();
  for (int i = 0; i < job->field_count(); ++i) {
    EXPECT_TRUE(fields.contains(job->field(i)->name()))
        << job->field(i)->name();
  }
  EXPECT_EQ(fields.size(), static_cast<size_t>(job->field_count()));
}

// The numbers of words are those of the enumerators.
TEST(JobProtoTest, EnumNamesMatchTheMessage) {
  const google::protobuf::Descriptor* job = v1::Job::descriptor();
  for (const JobOption& option : JobOptions()) {
    const auto* field = std::get_if<WordField>(&option.field);
    if (field == nullptr) continue;
    const google::protobuf::EnumDescriptor* type =
        job->FindFieldByName(std::string(option.name))->enum_type();
    ASSERT_NE(type, nullptr) << option.name;
    EXPECT_EQ(field->words.size(), static_cast<size_t>(type->value_count()));
    for (const OptionWord& word : field->words) {
      ASSERT_NE(type->FindValueByNumber(word.number), nullptr) << word.word;
      std::string name = type->FindValueByNumber(word.number)->name();
      absl::AsciiStrToLower(&name);
      EXPECT_TRUE(name.ends_with(word.word)) << name;
    }
  }
}

// A field added later is absent from requests that do not use it.
TEST(JobProtoTest, LaterFieldsAreAbsentByDefault) {
  v1::Job proto;
  JobToProto(JobSpec(), proto);
  EXPECT_EQ(proto.walk_p(), 0);
  JobSpec spec;
  spec.walk_p = 0.25;
  JobToProto(spec, proto);
  EXPECT_EQ(proto.walk_p(), 0.25);
  EXPECT_EQ(JobFromProto(proto)->walk_p, 0.25);
  EXPECT_EQ(JobFromProto(proto)->walk_q, 1);
}

TEST(JobProtoTest, RefusesABatchSizeBeyond63Bits) {
  v1::Job job;
  job.set_batch_size(uint64_t{1} << 63);
  EXPECT_EQ(JobFromProto(job).status().message(),
            "job.batch_size 9223372036854775808 is too large");
  job.set_batch_size(5);
  job.set_walks(~uint32_t{0});
  EXPECT_EQ(JobFromProto(job)->walks, std::numeric_limits<int>::max());
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

TEST(JobProtoTest, ColumnsRoundTrip) {
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

TEST(JobProtoTest, ErrorsNameTheFieldAndItsValue) {
  struct Case {
    void (*change)(v1::Job& job);
    const char* message;
  };
  for (const Case& example : std::initializer_list<Case>{
           {[](v1::Job& j) {
              j.set_direction(static_cast<v1::Job::Direction>(9));
            },
            "unknown job.direction 9"},
           {[](v1::Job& j) { j.set_method(static_cast<v1::Job::Method>(-1)); },
            "unknown job.method -1"},
           {[](v1::Job& j) {
              j.set_negatives(static_cast<v1::Job::Negatives>(77));
            },
            "unknown job.negatives 77"},
           {[](v1::Job& j) {
              j.add_relation_fanouts()->set_relation("a__b__c");
              j.add_relation_fanouts()->set_relation("a__b__d");
              j.add_relation_fanouts()->set_relation("a__b__c");
            },
            "job.relation_fanouts names a__b__c twice"}}) {
    v1::Job job;
    example.change(job);
    const absl::Status status = JobFromProto(job).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), example.message);
  }
  v1::Columns columns;
  columns.set_labels(static_cast<v1::Columns::LabelRows>(3));
  EXPECT_EQ(ColumnsFromProto(columns).status().message(),
            "unknown columns.labels 3");
  columns.set_labels(v1::Columns::LABEL_ROWS_ALL);
  columns.set_feature_dtype(static_cast<v1::DType>(99));
  EXPECT_EQ(ColumnsFromProto(columns).status().message(),
            "unknown columns.feature_dtype 99");
}

TEST(JobProtoTest, LargeNumbersStayWhole) {
  v1::Job job;
  job.set_batch_size((uint64_t{1} << 63) - 1);
  EXPECT_EQ(JobFromProto(job)->batch_size, std::numeric_limits<int64_t>::max());
  job.set_walks(2147483646);
  EXPECT_EQ(JobFromProto(job)->walks, 2147483646);
}

// Each column alone, so that none stands for another.
TEST(JobProtoTest, EachColumnHasAFieldOfItsOwn) {
  for (bool Columns::*const member :
       {&Columns::features, &Columns::edge_features, &Columns::original_ids,
        &Columns::edge_ids, &Columns::degrees}) {
    Columns columns;
    columns.features = false;
    columns.labels = LabelRows::kNone;
    columns.*member = true;
    v1::Columns proto;
    ColumnsToProto(columns, proto);
    EXPECT_EQ(*ColumnsFromProto(proto), columns);
    EXPECT_EQ(proto.features() + proto.edge_features() + proto.original_ids() +
                  proto.edge_ids() + proto.degrees(),
              1);
  }
}

TEST(JobProtoTest, UsedSplitsRoundTrip) {
  v1::ExpandRequest request;
  UsedSplitsToProto({{"paper", "train", "f"}, {"a__b__c", "test", "g"}},
                    *request.mutable_splits());
  const std::vector<UsedSplit> back = UsedSplitsFromProto(request.splits());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].type, "paper");
  EXPECT_EQ(back[0].name, "train");
  EXPECT_EQ(back[0].fingerprint, "f");
  EXPECT_EQ(back[1].type, "a__b__c");
}

}  // namespace
}  // namespace millrace
