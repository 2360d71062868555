// SPDX-License-Identifier: Apache-2.0
#include "common/wire/manifest_proto.h"

#include <gtest/gtest.h>

#include "common/graph/store.h"
#include "sampler.pb.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

class ManifestProtoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    manifest_ = testing::TestStore(testing::RichGraph(), 3).Open()->manifest();
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
