// SPDX-License-Identifier: Apache-2.0
// Splits added to a store while servers serve it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/file/npy.h"
#include "common/ingest/add_split.h"
#include "common/wire/error_info.h"
#include "common/wire/job_proto.h"
#include "tests/support/fleet_harness.h"

namespace millrace {
namespace {

using testing::CallSample;
using testing::FleetHarness;
using ::testing::HasSubstr;
using testing::SampleRequestOf;

class AddedSplitsTest : public ::testing::Test {
 protected:
  explicit AddedSplitsTest(
      const testing::TestGraph& graph = testing::SmallGraph())
      : fleet_(graph, 2) {}

  void Add(const std::string& type, const std::string& name,
           std::vector<int64_t> ids) const {
    const std::filesystem::path file =
        testing::TestDirectory("added_split") / "ids.npy";
    ASSERT_TRUE(WriteNpy(file, Array::Adopt(std::move(ids))).ok());
    const auto added = AddSplit(fleet_.store()->path(),
                                {.name = name, .type = type, .ids = file});
    ASSERT_TRUE(added.ok()) << added.status();
  }

  v1::SampleRequest Request(const std::string& split,
                            const std::string& train_graph = "") const {
    JobSpec spec;
    spec.seed_type = fleet_.store()->schema().node_types.back().name;
    spec.split = split;
    spec.train_graph = train_graph;
    spec.fanouts = {2, 2};
    spec.batch_size = 2;
    return SampleRequestOf(spec, Columns(), 0);
  }
  static void Use(v1::SampleRequest& request, const UsedSplit& split) {
    UsedSplitsToProto({split}, *request.mutable_splits());
  }
  absl::Status Sample(const v1::SampleRequest& request) const {
    return CallSample(*fleet_.Stub(0), request).status;
  }

  v1::DescribeReply Describe(bool look) const {
    grpc::ClientContext context;
    v1::DescribeRequest request;
    request.set_look_for_splits(look);
    v1::DescribeReply reply;
    const grpc::Status status =
        fleet_.Stub(0)->Describe(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }
  std::string FingerprintOf(const std::string& name) const {
    const v1::DescribeReply described = Describe(/*look=*/true);
    for (const auto& split : described.splits()) {
      if (split.name() == name) return split.fingerprint();
    }
    return "";
  }

  static void ExpectElsewhere(const absl::Status& status,
                              const std::string& what) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_TRUE(ErrorInfoOf(status).moved);
  }

  FleetHarness fleet_;
};

TEST_F(AddedSplitsTest, AreFoundByTheFirstRequestThatNamesThem) {
  v1::SampleRequest request = Request("mine");
  EXPECT_TRUE(absl::IsNotFound(Sample(request)));
  Add("", "mine", {1, 2, 6});
  EXPECT_EQ(Sample(request), absl::OkStatus());
}

TEST_F(AddedSplitsTest, AreDescribedOnRequest) {
  const int before = Describe(/*look=*/true).splits_size();
  Add("", "mine", {1, 2, 6});
  EXPECT_EQ(Describe(/*look=*/false).splits_size(), before);
  EXPECT_EQ(FingerprintOf("mine").size(), 64u);
  EXPECT_EQ(Describe(/*look=*/false).splits_size(), before + 1);
}

TEST_F(AddedSplitsTest, MustHaveTheFingerprintOrAreRefused) {
  v1::SampleRequest request = Request("mine");
  Use(request, {"node", "mine", "ab12"});
  ExpectElsewhere(Sample(request), "has no split \"mine\" of node");
  Add("", "mine", {1, 2, 6});
  const absl::Status other = Sample(request);
  ExpectElsewhere(other, "fingerprint " + FingerprintOf("mine") + ", not ab12");
  request.clear_splits();
  Use(request, {"node", "mine", FingerprintOf("mine")});
  EXPECT_EQ(Sample(request), absl::OkStatus());
}

// Both servers reread the store: the one that is called, and its peer.
TEST_F(AddedSplitsTest, MakeTrainGraphs) {
  Add("", "mine", {0, 1, 2, 4, 6});
  const v1::SampleRequest request = Request("train", "mine");
  EXPECT_EQ(Sample(request), absl::OkStatus());
}

class AddedTypesTest : public AddedSplitsTest {
 protected:
  AddedTypesTest() : AddedSplitsTest(testing::RichGraph()) {}
};

// Otherwise a batch would change for a job that was started without the type's
// split.
TEST_F(AddedTypesTest, OfAnotherTypeDoNotAffectTheTrainGraph) {
  const std::string type = fleet_.store()->schema().node_types.back().name;
  const std::string other = fleet_.store()->schema().node_types.front().name;
  ASSERT_NE(type, other);
  Add(type, "mine", {0, 1, 2});
  v1::SampleRequest request = Request("mine", "mine");
  Use(request, {type, "mine", FingerprintOf("mine")});
  EXPECT_EQ(Sample(request), absl::OkStatus());
  Add(other, "mine", {0, 1});
  // The server has not looked for new splits yet.
  EXPECT_EQ(Sample(request), absl::OkStatus());
  Describe(/*look=*/true);
  ExpectElsewhere(Sample(request), "which the client does not know");
}

}  // namespace
}  // namespace millrace
