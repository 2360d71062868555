// SPDX-License-Identifier: Apache-2.0
#include "common/sample/resolve_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Manifest TwoTypes() {
  Manifest manifest;
  manifest.schema.node_types = {{.name = "user", .count = 3},
                                {.name = "item", .count = 4}};
  manifest.schema.relations = {
      {.src = 0, .name = "buys", .dst = 1, .has_in = true},
      {.src = 1, .name = "rev_buys", .dst = 0, .has_in = true}};
  manifest.books = {PartitionBook({0, 3}), PartitionBook({0, 4})};
  return manifest;
}

JobSpec Good() {
  JobSpec spec;
  spec.seed_type = "item";
  spec.fanouts = {3, 2};
  return spec;
}

TEST(ResolveJobTest, UnnamedRelationsTakeTheCommonFanouts) {
  JobSpec spec = Good();
  spec.relation_fanouts["item__rev_buys__user"] = {0, 5};
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->seed_type, 1);
  EXPECT_EQ(job->hops, 2);
  EXPECT_THAT(job->fanouts, ElementsAre(ElementsAre(3, 2), ElementsAre(0, 5)));
}

TEST(ResolveJobTest, RelationsWithoutFanoutsAreNotSampled) {
  JobSpec spec = Good();
  spec.fanouts.clear();
  spec.relation_fanouts["user__buys__item"] = {4, -1};
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->fanouts, ElementsAre(ElementsAre(4, -1), ElementsAre(0, 0)));
}

TEST(ResolveJobTest, TheLargestFanoutIsOne) {
  JobSpec spec = Good();
  spec.fanouts = {kMaxFanout, 2};
  EXPECT_TRUE(ResolveJob(spec, TwoTypes()).ok());
}

TEST(ResolveJobTest, TheMostHopsAreSome) {
  JobSpec spec = Good();
  spec.fanouts.assign(255, 1);
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->hops, 255);
}

TEST(ResolveJobTest, BatchesMayBeAsSmallAndAsLargeAsTheMessageSays) {
  JobSpec spec = Good();
  for (const int64_t size : {int64_t{1}, int64_t{1} << 30}) {
    spec.batch_size = size;
    EXPECT_TRUE(ResolveJob(spec, TwoTypes()).ok()) << size;
  }
  spec.batch_size = (int64_t{1} << 30) + 1;
  EXPECT_FALSE(ResolveJob(spec, TwoTypes()).ok());
}

TEST(ResolveJobTest, NoHopsMeansSeedsAlone) {
  JobSpec spec = Good();
  spec.fanouts.clear();
  const auto job = ResolveJob(spec, TwoTypes());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->hops, 0);
}

struct BadJob {
  std::string name;
  std::function<void(JobSpec&)> spoil;
  absl::StatusCode code;
  std::string message;
};

class BadJobTest : public ::testing::TestWithParam<BadJob> {};

TEST_P(BadJobTest, IsRefusedByName) {
  JobSpec spec = Good();
  GetParam().spoil(spec);
  const auto job = ResolveJob(spec, TwoTypes());
  EXPECT_EQ(job.status().code(), GetParam().code) << job.status();
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Specs, BadJobTest,
    ::testing::Values(
        BadJob{"fanout",
               [](JobSpec& s) {
                 s.fanouts = {5, -2};
               },
               absl::StatusCode::kInvalidArgument,
               "fanouts -2 is out of range: 0 to 1048576, or -1 for all "
               "neighbours"},
        BadJob{"large_fanout",
               [](JobSpec& s) {
                 s.fanouts = {kMaxFanout + 1, 2};
               },
               absl::StatusCode::kInvalidArgument,
               "fanouts 1048577 is out of range: 0 to 1048576, or -1"},
        BadJob{"large_fanout_of_a_relation",
               [](JobSpec& s) {
                 s.relation_fanouts["user__buys__item"] = {2, kMaxFanout + 1};
               },
               absl::StatusCode::kInvalidArgument,
               "fanouts user__buys__item=1048577 is out of range"},
        BadJob{"hops", [](JobSpec& s) { s.fanouts.assign(256, 1); },
               absl::StatusCode::kInvalidArgument, "256 hops; the limit"},
        BadJob{"lengths",
               [](JobSpec& s) { s.relation_fanouts["user__buys__item"] = {1}; },
               absl::StatusCode::kInvalidArgument, "another relation has 2"},
        BadJob{
            "relation",
            [](JobSpec& s) { s.relation_fanouts["user__sells__item"] = {1}; },
            absl::StatusCode::kNotFound, "user__sells__item"},
        BadJob{"type", [](JobSpec& s) { s.seed_type = "shop"; },
               absl::StatusCode::kNotFound, "shop"},
        BadJob{"no_type", [](JobSpec& s) { s.seed_type.clear(); },
               absl::StatusCode::kInvalidArgument, "user, item"},
        BadJob{"batch_size", [](JobSpec& s) { s.batch_size = 0; },
               absl::StatusCode::kInvalidArgument,
               "batch_size 0 is out of range: 1 to "},
        BadJob{"direction", [](JobSpec& s) { s.direction = Direction::kOut; },
               absl::StatusCode::kFailedPrecondition,
               "direction out: the store has no out-lists of "}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace millrace
