// SPDX-License-Identifier: Apache-2.0
// Every kind of batch made by a fleet equals, bit for bit, the one made without
// servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "client/remote_batch_source.h"
#include "common/base/field_error.h"
#include "common/sample/digest.h"
#include "common/sample/resolve_job.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/pending_fetch.h"
#include "tests/support/ways.h"

namespace millrace {
namespace {

using testing::FleetHarness;
using testing::RandomGraph;
using testing::Way;

constexpr int kParts = 3;

class MethodsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    graph_ = new testing::TestGraph(RandomGraph(6));
    fleet_ = new FleetHarness(*graph_, kParts);
    // A dataset, so that nothing of the partitioning can affect it.
    local_ = testing::OpenGraph(*graph_, 0).release();
  }
  static void TearDownTestSuite() {
    delete local_;
    delete fleet_;
    delete graph_;
  }

  static std::unique_ptr<RemoteBatchSource> Connect(double cache_ratio = 0) {
    RemoteOptions options;
    options.servers = "@" + fleet_->list();
    options.cache_ratio = cache_ratio;
    auto source = RemoteBatchSource::Connect(options);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  static absl::StatusOr<Batch> Fetch(BatchSource& source, const JobSpec& spec,
                                     BatchRequest request) {
    const absl::StatusOr<ResolvedJob> job = ResolveJob(spec, source.manifest());
    if (!job.ok()) return job.status();
    return testing::PendingFetch(source, *job, std::move(request)).Wait();
  }

  // Returns the batch of the fleet if it equals the one made without servers.
  static absl::StatusOr<Batch> ExpectSame(BatchSource& remote,
                                          const JobSpec& spec,
                                          const BatchRequest& request) {
    const Schema& schema = fleet_->store()->schema();
    auto got = Fetch(remote, spec, request);
    const auto want = Fetch(*local_, spec, request);
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(want.ok()) << want.status();
    if (got.ok() && want.ok()) {
      EXPECT_EQ(Hex(DigestBatch(*got, schema)),
                Hex(DigestBatch(*want, schema)));
    }
    return got;
  }

  static BatchRequest Request(const Way& way) {
    BatchRequest request;
    request.epoch = 3;
    request.columns = DigestColumns(/*features=*/true, way.has_edge_ids());
    return request;
  }

  // Owned by the suite.
  static testing::TestGraph* graph_;
  static FleetHarness* fleet_;
  static LocalBatchSource* local_;
};
testing::TestGraph* MethodsTest::graph_ = nullptr;
FleetHarness* MethodsTest::fleet_ = nullptr;
LocalBatchSource* MethodsTest::local_ = nullptr;

TEST_F(MethodsTest, CachedFeaturesChangeNoBatch) {
  const auto remote = Connect(/*cache_ratio=*/0.4);
  for (const Way& way : testing::WaysToSample()) {
    SCOPED_TRACE(way.name);
    BatchRequest request = Request(way);
    request.explicit_seeds = testing::SeedsFor(way.Job()).front();
    for (; request.batch < kParts; ++request.batch) {
      ASSERT_TRUE(ExpectSame(*remote, way.Job(), request).ok());
    }
  }
}

TEST_F(MethodsTest, ExplicitSeedsGiveTheBatchesMadeLocally) {
  const auto remote = Connect();
  uint32_t batch = 0;
  for (const Way& way : testing::WaysToSample()) {
    SCOPED_TRACE(way.name);
    for (const testing::Seeds& seeds : testing::SeedsFor(way.Job())) {
      BatchRequest request = Request(way);
      request.batch = batch++;  // each partition is the home in turn
      request.explicit_seeds = seeds;
      const auto got = ExpectSame(*remote, way.Job(), request);
      ASSERT_TRUE(got.ok());
      if (!seeds.times.empty()) {
        EXPECT_EQ(testing::Int64s(got->seed_time), seeds.times);
      }
    }
  }
}

// A third of all pairs of nodes are edges, so many negatives are drawn again.
TEST_F(MethodsTest, NegativesGiveTheBatchesMadeLocally) {
  const auto remote = Connect();
  for (const auto& relation : graph_->relations) {
    for (const NegativeMode mode :
         {NegativeMode::kBinary, NegativeMode::kTriplet}) {
      JobSpec spec;
      spec.seed_kind = SeedKind::kEdge;
      spec.seed_type =
          relation.src + "__" + relation.name + "__" + relation.dst;
      SCOPED_TRACE(spec.seed_type);
      spec.fanouts = {2};
      spec.negatives = {mode, 5};
      BatchRequest request;
      request.columns = DigestColumns(/*features=*/true, /*edge_ids=*/true);
      ExplicitSeeds seeds;
      for (size_t i = 0; i < 30; ++i) {
        seeds.ids.push_back(relation.edges[i].first);
        seeds.dst.push_back(relation.edges[i].second);
      }
      request.explicit_seeds = seeds;
      for (; request.batch < kParts; ++request.batch) {
        ASSERT_TRUE(ExpectSame(*remote, spec, request).ok());
      }
    }
  }
}

TEST_F(MethodsTest, SplitsGiveTheBatchesMadeLocally) {
  const auto remote = Connect();
  for (const Way& way : testing::WaysToSample()) {
    SCOPED_TRACE(way.name);
    JobSpec spec = way.Job();
    spec.split = "train";
    spec.batch_size = 7;
    for (uint32_t batch = 0; batch < 3; ++batch) {
      BatchRequest request = Request(way);
      request.batch = batch;
      ASSERT_TRUE(ExpectSame(*remote, spec, request).ok());
    }
  }
}

TEST_F(MethodsTest, FeaturesOfEdgesAreThoseOfTheirEdgeIds) {
  const auto remote = Connect();
  for (const Way& way : testing::WaysToSample()) {
    if (!way.has_edge_ids()) continue;
    SCOPED_TRACE(way.name);
    BatchRequest request = Request(way);
    request.batch = 2;
    request.explicit_seeds = testing::SeedsFor(way.Job()).front();
    const auto batch = Fetch(*remote, way.Job(), request);
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_GT(testing::ExpectFeaturesOfEdges(*batch, *graph_,
                                             fleet_->store()->schema()),
              0);
  }
}

// Degrees count the lists that are drawn from, in all relations.
TEST_F(MethodsTest, DegreesAreThoseOfTheDirection) {
  const auto remote = Connect();
  const Schema& schema = fleet_->store()->schema();
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    std::vector<std::vector<uint32_t>> degrees;  // by type and original id
    for (const testing::TestType& type : graph_->types) {
      degrees.emplace_back(static_cast<size_t>(type.count), 0);
    }
    for (size_t r = 0; r < schema.relations.size(); ++r) {
      for (const auto& [src, dst] : graph_->relations[r].edges) {
        const bool in = direction == Direction::kIn;
        ++degrees[ListOwnerType(schema.relations[r], direction)]
                 [in ? dst : src];
      }
    }
    JobSpec spec = testing::ExplicitJob({3, 2}, "item");
    spec.direction = direction;
    BatchRequest request;
    request.explicit_seeds = testing::Seeds{{0, 8, 13, 27, 30}};
    request.columns.original_ids = request.columns.degrees = true;
    for (; request.batch < kParts; ++request.batch) {
      const auto batch = Fetch(*remote, spec, request);
      ASSERT_TRUE(batch.ok()) << batch.status();
      for (size_t t = 0; t < batch->nodes.size(); ++t) {
        const NodeBlock& block = batch->nodes[t];
        EXPECT_GT(block.count(), 0u);
        for (int64_t v = 0; v < block.count(); ++v) {
          EXPECT_EQ(block.degree.IntegerAt(v),
                    degrees[t][block.original_id.IntegerAt(v)]);
        }
      }
    }
  }
}

// Half of the seeds have the time of their edge, the others a later one, at
// which there may be no edge.
TEST_F(MethodsTest, SeedEdgesAreExcludedByTheirTimes) {
  const auto remote = Connect();
  const testing::TestRelation& buys = graph_->relations[0];
  JobSpec spec = testing::ExplicitJob({});
  spec.relation_fanouts = {{"user__buys__item", {kAllNeighbors}}};
  spec.seed_kind = SeedKind::kEdge;
  spec.seed_type = "user__buys__item";
  spec.exclude = ExcludeSeedEdges::kSelf;
  ExplicitSeeds seeds;
  std::set<std::tuple<int64_t, int64_t, int64_t>> excluded;
  std::set<int64_t> items;
  for (size_t e = 0; e < 60; ++e) {
    const auto& [user, item] = buys.edges[e];
    seeds.ids.push_back(user);
    seeds.dst.push_back(item);
    seeds.times.push_back(buys.time[e] + static_cast<int64_t>(e % 2));
    excluded.emplace(user, item, seeds.times.back());
    items.insert(item);
  }
  std::set<int64_t> want;
  for (size_t e = 0; e < buys.edges.size(); ++e) {
    const auto& [user, item] = buys.edges[e];
    if (items.contains(item) &&
        !excluded.contains({user, item, buys.time[e]})) {
      want.insert(static_cast<int64_t>(e));
    }
  }
  BatchRequest request;
  request.explicit_seeds = seeds;
  request.columns = DigestColumns(/*features=*/false, /*edge_features=*/false);
  for (; request.batch < kParts; ++request.batch) {
    const auto batch = ExpectSame(*remote, spec, request);
    ASSERT_TRUE(batch.ok());
    const auto ids = testing::Int64s(batch->edges[0].edge_id);
    EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()), want);
    EXPECT_EQ(ids.size(), want.size());
  }
}

// Edge features need neither edge ids nor node features.
TEST_F(MethodsTest, FeaturesOfEdgesNeedNothingElse) {
  const auto remote = Connect();
  JobSpec spec = testing::ExplicitJob({3, 2}, "item");
  BatchRequest request;
  request.explicit_seeds = testing::Seeds{{1, 2, 3}};
  request.columns = {
      .features = false, .edge_features = true, .labels = LabelRows::kNone};
  const auto got = Fetch(*remote, spec, request);
  const auto want = Fetch(*local_, spec, request);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(want.ok()) << want.status();
  for (size_t r = 0; r < want->edges.size(); ++r) {
    const Array& a = got->edges[r].feature;
    const Array& b = want->edges[r].feature;
    ASSERT_EQ(a.present(), b.present());
    if (!a.present()) continue;
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.total_bytes()), 0);
  }
  for (const NodeBlock& block : got->nodes) {
    EXPECT_FALSE(block.feature.present());
  }
}

// The seeds are users, which have no labels, while items have some.
TEST_F(MethodsTest, LabelsAreOnlyOfTheSeedsType) {
  const auto remote = Connect();
  BatchRequest request;
  request.explicit_seeds = testing::Seeds{{1, 2, 3}};
  request.columns = DigestColumns(/*features=*/true, /*edge_features=*/true);
  const auto batch =
      ExpectSame(*remote, testing::ExplicitJob({3, 2}, "user"), request);
  ASSERT_TRUE(batch.ok());
  EXPECT_GT(batch->nodes[1].count(), 0u);
  EXPECT_FALSE(batch->nodes[1].label.present());
}

TEST_F(MethodsTest, SeedsWithoutTimesAreRefusedByTheServer) {
  const auto remote = Connect();
  JobSpec spec = testing::ExplicitJob({2}, "user");  // which have no times
  spec.temporal = TemporalStrategy::kUniform;
  BatchRequest request;
  request.explicit_seeds = testing::Seeds{{1, 2}};
  for (BatchSource* source : {static_cast<BatchSource*>(remote.get()),
                              static_cast<BatchSource*>(local_)}) {
    const absl::Status status = Fetch(*source, spec, request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("temporal: 0 times for 2 seeds"));
    // So that programs can name the option.
    const std::optional<FieldError> error = GetFieldError(status);
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->field, "temporal");
  }
  request.explicit_seeds = testing::Seeds{{1, 2}, {4, 9}};
  EXPECT_TRUE(ExpectSame(*remote, spec,
                         {.explicit_seeds = testing::Seeds{{1, 2}, {4, 9}},
                          .columns = DigestColumns(true, false)})
                  .ok());
}

}  // namespace
}  // namespace millrace
