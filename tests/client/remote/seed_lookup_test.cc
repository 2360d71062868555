// SPDX-License-Identifier: Apache-2.0
#include "client/remote/seed_lookup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "sampler.pb.h"
#include "tests/support/fake_timer.h"

namespace millrace {
namespace {

constexpr size_t kMostSeeds = 1048576;  // of one batch

// Seeds of a graph without running servers: a valid lookup fails with
// UNAVAILABLE.
class SeedLookupTest : public ::testing::Test {
 protected:
  SeedLookupTest() {
    FleetOptions options;
    options.list = "127.0.0.1:1";
    fleet_ = Fleet::Create(options).value();
    manifest_.schema.node_types = {{.name = "node", .count = 8}};
    manifest_.schema.relations = {{.src = 0, .name = "to", .dst = 0}};
    manifest_.books = {PartitionBook({0, 8})};
  }

  CallContext Context() {
    return {*fleet_,   manifest_, absl::Minutes(1), retry_,
            refusals_, hedging_,  timer_,           received_};
  }

  absl::Status Look() {
    const CallContext context = Context();
    SeedLookup lookup(context, job_, list_);
    const auto calls =
        std::make_shared<AttemptCalls>([](const absl::Status&) {});
    const absl::Status status = lookup.StartIds(*calls);
    calls->Close(status);
    return status;
  }

  Manifest manifest_;
  ResolvedJob job_;
  ExplicitSeeds list_;
  std::unique_ptr<Fleet> fleet_;
  Retry retry_{absl::Seconds(20)};
  Refusals refusals_;
  Hedging hedging_;
  testing::FakeTimer timer_;
  std::atomic<uint64_t> received_ = 0;
};

TEST_F(SeedLookupTest, RefusesOneSeedTooMany) {
  list_.ids.assign(kMostSeeds, 3);
  EXPECT_TRUE(absl::IsUnavailable(Look())) << Look();
  list_.ids.push_back(3);
  EXPECT_TRUE(absl::IsInvalidArgument(Look())) << Look();
}

TEST_F(SeedLookupTest, RefusesOneNegativeTooMany) {
  job_.spec.seed_kind = SeedKind::kEdge;
  job_.seed_relation = 0;
  list_.ids = list_.dst = {5};
  list_.negatives.assign(kMostSeeds, 3);
  EXPECT_TRUE(absl::IsUnavailable(Look())) << Look();
  list_.negatives.push_back(3);
  EXPECT_TRUE(absl::IsInvalidArgument(Look())) << Look();
}

// Each end of an edge has ids of its own type's width. The lookup makes room
// for the sources before it finds that no server is running.
TEST_F(SeedLookupTest, SendsIdsInTheWidthOfTheirType) {
  constexpr int64_t kMany = int64_t{1} << 32;
  manifest_.schema.node_types = {{.name = "wide", .count = kMany},
                                 {.name = "node", .count = 8}};
  manifest_.schema.relations = {{.src = 0, .name = "to", .dst = 1}};
  manifest_.books = {PartitionBook({0, kMany}), PartitionBook({0, 8})};
  job_.spec.seed_kind = SeedKind::kEdge;
  job_.seed_relation = 0;
  job_.seed_type = 1;
  list_.ids = list_.dst = {5, 6, 7};
  const CallContext context = Context();
  SeedLookup lookup(context, job_, list_);
  const auto calls = std::make_shared<AttemptCalls>([](const absl::Status&) {});
  const absl::Status status = lookup.StartIds(*calls);
  calls->Close(status);
  ASSERT_TRUE(absl::IsUnavailable(status)) << status;
  v1::SampleRequest message;
  lookup.AppendTo(message);
  EXPECT_EQ(message.explicit_ids().size(), 3 * sizeof(uint64_t));
}

// Each column is checked; the last node is 7.
TEST_F(SeedLookupTest, RefusesNodesThatDoNotExist) {
  job_.spec.seed_kind = SeedKind::kEdge;
  job_.seed_relation = 0;
  list_.ids = list_.dst = list_.negatives = {7};
  EXPECT_TRUE(absl::IsUnavailable(Look())) << Look();
  list_.ids = {8};
  EXPECT_TRUE(absl::IsInvalidArgument(Look())) << Look();
}

}  // namespace
}  // namespace millrace
