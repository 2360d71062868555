// SPDX-License-Identifier: Apache-2.0
// Requests for weighted, temporal and other draws that our clients never send:
// they get typed errors, and the server carries on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/fleet_harness.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::CallGather;
using testing::CallSample;
using testing::FleetHarness;
using ::testing::HasSubstr;
using testing::RandomGraph;
using testing::SampleRequestOf;

// Relation numbers in RandomGraph().
constexpr uint32_t kBuys = 0, kLikes = 1, kCites = 2;

template <typename T>
std::string Raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// One server of everything in RandomGraph(), and one of a graph without
// columns.
class BadDrawsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    rich_ = new FleetHarness(RandomGraph(1), 1);
    plain_ = new FleetHarness(testing::SmallGraph(), 1);
  }
  static void TearDownTestSuite() {
    delete rich_;
    delete plain_;
  }
  // Good requests must still be answered, whatever was asked before.
  void TearDown() override {
    for (FleetHarness* fleet : {rich_, plain_}) {
      v1::ExpandReply reply;
      const absl::Status status = Expand(*fleet, GoodExpand(), reply);
      EXPECT_TRUE(status.ok()) << status;
    }
  }

  static v1::ExpandRequest GoodExpand() {
    v1::ExpandRequest request;
    v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
    frontier.set_ids(Raw<uint32_t>({1, 2}));
    frontier.set_fanout(2);
    return request;
  }

  static absl::Status Expand(FleetHarness& fleet,
                             const v1::ExpandRequest& request,
                             v1::ExpandReply& reply) {
    ::grpc::ClientContext context;
    testing::SetDeadline(context, absl::Seconds(30));
    return FromGrpcStatus(fleet.Stub(0)->Expand(&context, request, &reply));
  }

  using Change =
      std::function<void(v1::ExpandRequest&, v1::ExpandRequest::Frontier&)>;
  static absl::Status ExpandStatus(const Change& change,
                                   FleetHarness* fleet = nullptr) {
    v1::ExpandRequest request = GoodExpand();
    change(request, *request.mutable_frontiers(0));
    v1::ExpandReply reply;
    return Expand(fleet == nullptr ? *rich_ : *fleet, request, reply);
  }

  static void ExpectRefused(const absl::Status& status, absl::StatusCode code,
                            const std::string& message) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  static FleetHarness* rich_;   // owned by the suite
  static FleetHarness* plain_;  // owned by the suite
};
FleetHarness* BadDrawsTest::rich_ = nullptr;
FleetHarness* BadDrawsTest::plain_ = nullptr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kLacks = absl::StatusCode::kFailedPrecondition;

TEST_F(BadDrawsTest, RulesOutOfRangeAreRefused) {
  for (const int rule : {5, 99, -1, 1 << 30}) {
    ExpectRefused(ExpandStatus([&](auto& r, auto&) {
                    r.set_rule(static_cast<v1::ExpandRequest::Rule>(rule));
                  }),
                  kInvalid, "rule " + std::to_string(rule));
  }
}

TEST_F(BadDrawsTest, HopsBeyondTheLargestAreRefused) {
  ExpectRefused(ExpandStatus([](auto& r, auto&) { r.set_hop(70000); }),
                kInvalid, "hop 70000");
  ExpectRefused(ExpandStatus([](auto& r, auto&) { r.set_hop(65536); }),
                kInvalid, "beyond hop 65535");
  ExpectRefused(ExpandStatus([](auto& r, auto&) { r.set_hop(~0u); }), kInvalid,
                "hop 4294967295");
  EXPECT_TRUE(ExpandStatus([](auto& r, auto&) { r.set_hop(65535); }).ok());
}

TEST_F(BadDrawsTest, WrongNumberOfTimesIsRefused) {
  ExpectRefused(
      ExpandStatus([](auto&, auto& f) { f.set_times(Raw<int64_t>({5})); }),
      kInvalid, "1 times for 2 ids");
  ExpectRefused(ExpandStatus([](auto&, auto& f) {
                  f.set_times(Raw<int64_t>({5, 6, 7}));
                }),
                kInvalid, "3 times for 2 ids");
  ExpectRefused(
      ExpandStatus([](auto&, auto& f) { f.set_times("twelve bytes"); }),
      kInvalid, "times");
  EXPECT_TRUE(ExpandStatus([](auto&, auto& f) {
                f.set_times(Raw<int64_t>({5, -5}));
              }).ok());
}

TEST_F(BadDrawsTest, ExcludedEdgesHaveBothEndsAndTheTimesOfTheirLists) {
  const auto exclude = [](size_t nodes, size_t neighbors, size_t times) {
    return [=](auto&, v1::ExpandRequest::Frontier& frontier) {
      frontier.set_excluded_nodes(Raw(std::vector<uint32_t>(nodes, 1)));
      frontier.set_excluded_neighbors(Raw(std::vector<uint32_t>(neighbors, 2)));
      frontier.set_excluded_times(Raw(std::vector<int64_t>(times, 3)));
    };
  };
  EXPECT_TRUE(ExpandStatus(exclude(2, 2, 0)).ok());
  EXPECT_TRUE(ExpandStatus(exclude(2, 2, 2)).ok());
  const std::vector<std::array<size_t, 3>> wrong = {
      {2, 1, 0}, {1, 2, 0}, {2, 2, 1}, {2, 2, 3}, {0, 0, 1}};
  for (const auto& [nodes, neighbors, times] : wrong) {
    ExpectRefused(ExpandStatus(exclude(nodes, neighbors, times)), kInvalid,
                  "excluded edges: " + std::to_string(nodes) + " nodes");
  }
  // These lists have no times.
  EXPECT_TRUE(ExpandStatus(exclude(2, 2, 0), plain_).ok());
  ExpectRefused(ExpandStatus(exclude(2, 2, 2), plain_), kInvalid,
                "excluded edges: 2 nodes, 2 neighbours and 2 times");
}

TEST_F(BadDrawsTest, ExcludedEdgesMayComeInAnyOrder) {
  for (uint32_t node = 0; node < 8; ++node) {
    v1::ExpandRequest request;
    v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
    frontier.set_ids(Raw<uint32_t>({node}));
    frontier.set_fanout(kAllNeighbors);
    // All pairs of the node and another one, the last first.
    frontier.set_excluded_nodes(Raw(std::vector<uint32_t>(8, node)));
    frontier.set_excluded_neighbors(Raw<uint32_t>({7, 6, 5, 4, 3, 2, 1, 0}));
    v1::ExpandReply reply;
    const absl::Status status = Expand(*plain_, request, reply);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(reply.picks(0).neighbors().empty()) << "node " << node;
  }
}

TEST_F(BadDrawsTest, MoreFrontiersThanRelationsAreRefused) {
  const auto status_of = [](int frontiers) {
    v1::ExpandRequest request = GoodExpand();
    while (request.frontiers_size() < frontiers) {
      *request.add_frontiers() = request.frontiers(0);
    }
    v1::ExpandReply reply;
    return Expand(*plain_, request, reply);
  };
  EXPECT_EQ(status_of(1), absl::OkStatus());
  ExpectRefused(status_of(2), kInvalid,
                "2 frontiers: the graph has 1 relations");
}

// Otherwise the whole graph would be sampled instead of an induced one.
TEST_F(BadDrawsTest, UnknownSplitsAreRefused) {
  const auto within = [](const std::string& name) {
    return ExpandStatus([&](auto& r, auto&) { r.set_within(name); });
  };
  ExpectRefused(within("trian"), kInvalid, "within \"trian\"");
  ExpectRefused(within("trian"), kInvalid, "\nuse the name of a split");
  EXPECT_TRUE(within("train").ok());  // items have such a split
  EXPECT_TRUE(within("").ok());
}

TEST_F(BadDrawsTest, OutOfRangeAmongNodesAreRefused) {
  const auto among = [](uint32_t relation, const std::string& ids) {
    return ExpandStatus([&](auto& r, auto& f) {
      r.set_rule(v1::ExpandRequest::RULE_AMONG);
      f.set_relation(relation);
      f.set_fanout(kAllNeighbors);
      f.set_among(ids);
    });
  };
  const auto users = static_cast<uint32_t>(RandomGraph(1).types[0].count);
  const auto items = static_cast<uint32_t>(RandomGraph(1).types[1].count);
  EXPECT_TRUE(among(kBuys, Raw<uint32_t>({0, users - 1})).ok());
  EXPECT_TRUE(among(kLikes, Raw<uint32_t>({items - 1})).ok());
  EXPECT_TRUE(among(kCites, "").ok());
  ExpectRefused(among(kBuys, Raw<uint32_t>({0, users})), kInvalid,
                "among[1] is " + std::to_string(users));
  ExpectRefused(among(kLikes, Raw<uint32_t>({items})), kInvalid, "among[0]");
  ExpectRefused(among(kCites, Raw<uint32_t>({~0u})), kInvalid, "among[0]");
  ExpectRefused(among(kCites, "abc"), kInvalid, "among");
}

TEST_F(BadDrawsTest, AmongAllowsNoFanout) {
  ExpectRefused(ExpandStatus([](auto& r, auto& f) {
                  r.set_rule(v1::ExpandRequest::RULE_AMONG);
                  f.set_fanout(2);
                }),
                kInvalid, "fanout 2 of a set of nodes is not -1");
}

// This holds whatever else a request with this rule contains.
TEST_F(BadDrawsTest, EmptyAmongGivesNoNeighbors) {
  v1::ExpandRequest request = GoodExpand();
  request.set_rule(v1::ExpandRequest::RULE_AMONG);
  request.set_replace(true);
  request.set_walk(true);
  request.mutable_frontiers(0)->set_fanout(kAllNeighbors);
  v1::ExpandReply reply;
  const absl::Status nobody = Expand(*rich_, request, reply);
  ASSERT_TRUE(nobody.ok()) << nobody;
  EXPECT_TRUE(reply.picks(0).neighbors().empty());
}

TEST_F(BadDrawsTest, RulesWithoutTheirColumnsAreRefused) {
  ExpectRefused(
      ExpandStatus(
          [](auto& r, auto&) { r.set_rule(v1::ExpandRequest::RULE_WEIGHTED); },
          plain_),
      kLacks, "node__to__node have no weights");
  // If the lists have no times, every entry is admissible, whatever times the
  // request has.
  v1::ExpandRequest request = GoodExpand();
  request.mutable_frontiers(0)->set_fanout(kAllNeighbors);
  v1::ExpandReply all, timed;
  ASSERT_TRUE(Expand(*plain_, request, all).ok());
  request.mutable_frontiers(0)->set_times(Raw<int64_t>({-9, -9}));
  ASSERT_TRUE(Expand(*plain_, request, timed).ok());
  EXPECT_EQ(timed.picks(0).neighbors(), all.picks(0).neighbors());
}

// A store that lacks the original ids of neighbours.
TEST_F(BadDrawsTest, LaborOverListsWithoutOriginalIdsIsRefused) {
  const auto directory = testing::TestDirectory("no_originals");
  const testing::TestGraph graph = testing::SmallGraph();
  ASSERT_TRUE(testing::BuildStore(graph, 1, testing::SpreadAssignment(graph, 1),
                                  directory / "store",
                                  /*neighbor_original_ids=*/false)
                  .ok());
  const auto server =
      SamplerServer::Start(Store::Open(directory / "store").value(), {})
          .value();
  auto stub = v1::Sampler::NewStub(::grpc::CreateChannel(
      server->address(), ::grpc::InsecureChannelCredentials()));
  v1::ExpandRequest request = GoodExpand();
  request.set_rule(v1::ExpandRequest::RULE_LABOR);
  ::grpc::ClientContext context;
  v1::ExpandReply reply;
  ExpectRefused(FromGrpcStatus(stub->Expand(&context, request, &reply)), kLacks,
                "do not hold the original ids of neighbours");
  JobSpec spec;
  spec.fanouts = {2};
  spec.method = SampleMethod::kLabor;
  ExpectRefused(CallSample(*stub, SampleRequestOf(spec, {}, 0)).status, kLacks,
                "the store has no original ids of neighbours");
}

TEST_F(BadDrawsTest, RowsBeyondTheFeaturesAreRefused) {
  const auto gather = [](FleetHarness& fleet, uint32_t relation,
                         const std::string& rows) {
    v1::GatherRequest request;
    request.set_edge_relation(relation);
    request.set_rows(rows);
    return CallGather(*fleet.Stub(0), request).status;
  };
  const uint64_t edges = RandomGraph(1).relations[kBuys].edges.size();
  EXPECT_TRUE(gather(*rich_, kBuys, Raw<uint64_t>({0, edges - 1})).ok());
  EXPECT_TRUE(gather(*rich_, kBuys, "").ok());
  ExpectRefused(gather(*rich_, kBuys, Raw<uint64_t>({0, edges})), kInvalid,
                "rows[1] is " + std::to_string(edges));
  ExpectRefused(gather(*rich_, kBuys, Raw<uint64_t>({~uint64_t{0}})), kInvalid,
                "rows[0]");
  ExpectRefused(gather(*rich_, kBuys, "seven b"), kInvalid, "rows");
  ExpectRefused(gather(*rich_, kLikes, Raw<uint64_t>({0})), kLacks,
                "the edges of item__likes__user have no features");
  ExpectRefused(gather(*plain_, 0, ""), kLacks, "have no features");
  ExpectRefused(gather(*rich_, 3, ""), kInvalid,
                "relation 3: the graph has 3\nnumber them from 0");
  ExpectRefused(gather(*rich_, ~0u, ""), kInvalid, "relation 4294967295");
}

TEST_F(BadDrawsTest, TimesThatATypeLacksAreRefused) {
  const auto gather = [](uint32_t type) {
    v1::GatherRequest request;
    request.set_node_type(type);
    request.set_column(v1::NODE_COLUMN_TIME);
    request.set_ids(Raw<uint32_t>({0}));
    return CallGather(*rich_->Stub(0), request).status;
  };
  EXPECT_TRUE(gather(1).ok());
  ExpectRefused(gather(0), kLacks, "node type user has no times");
}

class BadSampleTest : public BadDrawsTest {
 protected:
  static v1::SampleRequest Good() {
    JobSpec spec;
    spec.seed_type = "item";
    spec.fanouts = {2, 2};
    spec.batch_size = 4;
    return SampleRequestOf(spec, Columns(), 0);
  }
  static void Explicit(v1::SampleRequest& request) {
    request.mutable_job()->clear_split();
    request.set_explicit_ids(Raw<uint32_t>({3, 4}));
  }
  static absl::Status Status(
      const std::function<void(v1::SampleRequest&)>& change,
      FleetHarness* fleet = nullptr) {
    v1::SampleRequest request = Good();
    change(request);
    return CallSample(*(fleet == nullptr ? rich_ : fleet)->Stub(0), request)
        .status;
  }
  static void Walk(v1::Job& job) {
    job.set_method(v1::Job::METHOD_WALK);
    job.clear_fanouts();
    job.set_walks(2);
    job.set_walk_length(3);
    job.add_metapath("item__cites__item");
  }
};

TEST_F(BadSampleTest, UnknownMethodsAreRefused) {
  EXPECT_TRUE(Status([](auto&) {}).ok());
  ExpectRefused(Status([](auto& r) {
                  r.mutable_job()->set_method(static_cast<v1::Job::Method>(77));
                }),
                kInvalid, "unknown job.method 77");
  ExpectRefused(
      Status([](auto& r) {
        r.mutable_job()->set_temporal(static_cast<v1::Job::Temporal>(-3));
      }),
      kInvalid, "unknown job.temporal -3");
}

TEST_F(BadSampleTest, ImpossibleWalksAreRefused) {
  EXPECT_TRUE(Status([](auto& r) { Walk(*r.mutable_job()); }).ok());
  const auto walks = [](uint32_t walks, uint32_t length) {
    return Status([=](auto& r) {
      Walk(*r.mutable_job());
      r.mutable_job()->set_walks(walks);
      r.mutable_job()->set_walk_length(length);
    });
  };
  ExpectRefused(walks(0, 3), kInvalid, "walks 0 is out of range");
  ExpectRefused(walks(3, 0), kInvalid, "walk_length 0 is out of range");
  ExpectRefused(walks(3, 256), kInvalid, "walk_length 256 is out of range");
  for (const uint32_t huge : {1u << 20, 1u << 31, ~0u}) {
    EXPECT_EQ(walks(huge, 255).code(), kInvalid) << huge;
    EXPECT_EQ(walks(1, huge).code(), kInvalid) << huge;
  }
  ExpectRefused(Status([](auto& r) {
                  Walk(*r.mutable_job());
                  r.mutable_job()->clear_metapath();
                }),
                kInvalid, "metapath is needed");
  EXPECT_EQ(Status([](auto& r) {
              Walk(*r.mutable_job());
              r.mutable_job()->add_metapath("nothing");
            }).code(),
            absl::StatusCode::kNotFound);
  ExpectRefused(Status([](auto& r) {
                  Walk(*r.mutable_job());
                  r.mutable_job()->set_method(v1::Job::METHOD_PPR);
                  r.mutable_job()->set_restart(7);
                }),
                kInvalid, "restart 7 is out of range");
}

// Walkers and their paths are counted before anything is allocated: those of
// the first request would take 2 TB.
TEST_F(BadSampleTest, WalksBeyondTheMemoryAreRefused) {
  ServerOptions options;
  options.max_inflight_bytes = 256 << 20;
  FleetHarness small(RandomGraph(1), 1, options);
  const auto walks = [&](size_t seeds, uint32_t walks, uint32_t length,
                         v1::Job::Method method) {
    return Status(
        [=](auto& r) {
          Walk(*r.mutable_job());
          r.mutable_job()->set_method(method);
          r.mutable_job()->set_walks(walks);
          r.mutable_job()->set_walk_length(length);
          if (method == v1::Job::METHOD_PPR) {
            r.mutable_job()->add_fanouts(2);
            r.mutable_job()->set_disjoint(false);
          }
          r.mutable_job()->clear_split();
          r.set_explicit_ids(Raw(std::vector<uint32_t>(seeds, 3)));
        },
        &small);
  };
  for (const absl::Status& status :
       {walks(500000, 4000, 250, v1::Job::METHOD_WALK),
        walks(10000, 2000, 20, v1::Job::METHOD_WALK)}) {
    ExpectRefused(status, kLacks,
                  "bytes on the server; the limit is 268435456");
  }
  EXPECT_TRUE(walks(100, 10, 20, v1::Job::METHOD_WALK).ok());
  EXPECT_TRUE(walks(4, 4000, 20, v1::Job::METHOD_PPR).ok());
}

TEST_F(BadSampleTest, MissingWeightsAndTimesAreRefused) {
  const auto plain = [](const std::function<void(v1::Job&)>& change) {
    return Status(
        [&](auto& r) {
          r.mutable_job()->clear_seed_type();
          change(*r.mutable_job());
        },
        plain_);
  };
  EXPECT_TRUE(plain([](v1::Job&) {}).ok());
  ExpectRefused(plain([](v1::Job& job) { job.set_weighted(true); }), kLacks,
                "weighted: the edges of node__to__node have no weights");
  ExpectRefused(
      plain([](v1::Job& job) { job.set_temporal(v1::Job::TEMPORAL_LAST); }),
      kLacks, "temporal: none of the edges and nodes");
  ExpectRefused(Status(
                    [](auto& r) {
                      r.mutable_job()->clear_seed_type();
                      r.mutable_columns()->set_edge_features(true);
                    },
                    plain_),
                kLacks, "edge_features: no relation");
}

TEST_F(BadSampleTest, TimesMustBeAsManyAsSeeds) {
  const auto times = [](const std::string& bytes) {
    return Status([&](auto& r) {
      Explicit(r);
      r.mutable_job()->set_temporal(v1::Job::TEMPORAL_UNIFORM);
      r.set_explicit_times(bytes);
    });
  };
  EXPECT_TRUE(times(Raw<int64_t>({3, 4})).ok());
  ExpectRefused(times(""), kInvalid, "0 times for 2 seeds");
  for (const std::vector<int64_t>& wrong :
       std::vector<std::vector<int64_t>>{{3}, {3, 4, 5}}) {
    const absl::Status status = times(Raw(wrong));
    ExpectRefused(status, kInvalid, "2 explicit seeds");
    ExpectRefused(status, kInvalid, std::to_string(wrong.size()) + " times");
  }
  ExpectRefused(times("nine byte"), kInvalid, "explicit_times");
}

TEST_F(BadSampleTest, MissingEdgeFeaturesAreRefused) {
  ExpectRefused(Status([](auto& r) {
                  Walk(*r.mutable_job());
                  r.mutable_job()->set_method(v1::Job::METHOD_PPR);
                  r.mutable_job()->add_fanouts(2);
                  r.mutable_columns()->set_edge_features(true);
                }),
                kInvalid,
                "edge_features and method ppr cannot be used together");
}

std::string NotInRange(const std::string& place, int64_t id) {
  return place + " is " + std::to_string(id) +
         ", which is not in the id range [0, " + std::to_string(id) + ")";
}

// By default, the request asks for sources of edges user -> item.
TEST_F(BadDrawsTest, RefusedFrontiersNameTheirNumbers) {
  using Request = v1::ExpandRequest;
  using Frontier = v1::ExpandRequest::Frontier;
  const auto users = static_cast<uint32_t>(RandomGraph(1).types[0].count);
  const auto items = static_cast<uint32_t>(RandomGraph(1).types[1].count);
  ASSERT_NE(users, items);
  const auto exclude = [](uint32_t node, uint32_t neighbor) {
    return [=](Request&, Frontier& f) {
      f.set_excluded_nodes(Raw<uint32_t>({node}));
      f.set_excluded_neighbors(Raw<uint32_t>({neighbor}));
    };
  };
  EXPECT_EQ(ExpandStatus(exclude(items - 1, users - 1)), absl::OkStatus());
  EXPECT_EQ(ExpandStatus([&](auto&, auto& f) {
              f.set_fanout(1 << 20);
              f.set_ids(Raw<uint32_t>({items - 1}));
            }),
            absl::OkStatus());
  const std::string fanout = " is not -1 or 1 to 1048576";
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](Request&, Frontier& f) { f.set_fanout(0); }, "fanout 0" + fanout},
      {[](Request&, Frontier& f) { f.set_fanout(-2); }, "fanout -2" + fanout},
      {[](Request&, Frontier& f) { f.set_fanout((1 << 20) + 1); },
       "fanout 1048577" + fanout},
      {[](Request&, Frontier& f) { f.set_relation(3); },
       "relation 3: the graph has 3\nnumber them from 0, in the order of "
       "Describe"},
      {[&](Request&, Frontier& f) { f.set_ids(Raw<uint32_t>({items})); },
       NotInRange("ids[0]", items)},
      {[&](Request& r, Frontier& f) {
         r.set_direction(v1::Job::DIRECTION_OUT);
         f.set_ids(Raw<uint32_t>({0, users}));
       },
       NotInRange("ids[1]", users)},
      {[](Request&, Frontier& f) { f.set_trees(Raw<uint32_t>({1})); },
       "1 trees for 2 ids"},
      {[](Request&, Frontier& f) { f.set_trees("123"); },
       "trees has 3 bytes, which is not a multiple of 4"},
      {exclude(items, 0), NotInRange("excluded_nodes[0]", items)},
      {exclude(0, users), NotInRange("excluded_neighbors[0]", users)},
      {[](Request&, Frontier& f) { f.set_excluded_times("1234"); },
       "excluded_times has 4 bytes, which is not a multiple of 8"},
      {[](Request& r, Frontier&) {
         r.set_direction(static_cast<v1::Job::Direction>(7));
         r.set_hop(2);
       },
       "direction 7, rule 0, hop 2: no such direction or rule, or beyond hop "
       "65535"}};
  for (const auto& [change, message] : cases) {
    ExpectRefused(ExpandStatus(change), kInvalid, message);
  }
}

TEST_F(BadDrawsTest, DirectionsWithoutListsAreRefused) {
  testing::TestGraph graph = testing::SmallGraph();
  graph.relations[0].out = false;
  FleetHarness fleet(graph, 1);
  ExpectRefused(
      ExpandStatus(
          [](auto& r, auto&) { r.set_direction(v1::Job::DIRECTION_OUT); },
          &fleet),
      kLacks, "direction out: the store has no out-lists of node__to__node");
}

TEST_F(BadDrawsTest, GathersOfNoColumnNameTheirNumbers) {
  const auto gather = [](uint32_t type, int column, int dtype) {
    v1::GatherRequest request;
    request.set_node_type(type);
    request.set_column(static_cast<v1::NodeColumn>(column));
    request.set_feature_dtype(static_cast<v1::DType>(dtype));
    request.set_ids(Raw<uint32_t>({0}));
    return CallGather(*rich_->Stub(0), request).status;
  };
  EXPECT_EQ(gather(1, 0, 0), absl::OkStatus());
  ExpectRefused(gather(2, 0, 0), kInvalid,
                "node type 2, column 0, dtype 0: no such column");
  ExpectRefused(gather(1, 77, 0), kInvalid,
                "node type 1, column 77, dtype 0: no such column");
  ExpectRefused(gather(1, 0, 99), kInvalid,
                "node type 1, column 0, dtype 99: no such column");
  ExpectRefused(gather(0, 0, 0), kLacks, "node type user has no features");
}

TEST_F(BadSampleTest, RefusedSeedsNameTheirNumbers) {
  const auto items = static_cast<uint32_t>(RandomGraph(1).types[1].count);
  const std::string alone =
      "explicit_dst_ids, explicit_negative_ids or explicit_times without "
      "explicit_ids\nsend the seeds that they belong to";
  using Request = v1::SampleRequest;
  const std::vector<std::pair<std::function<void(Request&)>, std::string>>
      cases = {
          {[](Request& r) { r.mutable_job()->set_batch_size((1 << 20) + 1); },
           "batch size 1048577 is above the limit of 1048576"},
          {[](Request& r) {
             for (int i = 0; i < 3; ++i) r.add_cached_rows(0);
           },
           "3 cached_rows: the graph has 2 node types\nsend one for each type, "
           "or none"},
          {[](Request& r) { r.set_explicit_dst_ids(Raw<uint32_t>({1})); },
           alone},
          {[](Request& r) { r.set_explicit_negative_ids(Raw<uint32_t>({1})); },
           alone},
          {[](Request& r) { r.set_explicit_times(Raw<int64_t>({1})); }, alone},
          {[&](Request& r) {
             Explicit(r);
             r.set_explicit_ids(Raw<uint32_t>({0, items}));
           },
           NotInRange("explicit_ids[1]", items)},
          {[](Request& r) {
             Explicit(r);
             r.set_explicit_dst_ids(Raw<uint32_t>({1, 2}));
           },
           "2 explicit seeds with 2 destinations, 0 negatives and 0 times"},
          {[](Request& r) {
             Explicit(r);
             r.set_explicit_negative_ids(Raw<uint32_t>({1, 2, 3}));
           },
           "2 explicit seeds with 0 destinations, 3 negatives and 0 times"}};
  for (const auto& [change, message] : cases) {
    ExpectRefused(Status(change), kInvalid, message);
  }
  EXPECT_EQ(Status([](auto& r) {
              r.mutable_job()->set_batch_size(1 << 20);
              for (int i = 0; i < 2; ++i) r.add_cached_rows(0);
            }),
            absl::OkStatus());
}

// Pairs user -> item.
TEST_F(BadSampleTest, ExplicitPairsHaveBothEnds) {
  const auto users = static_cast<uint32_t>(RandomGraph(1).types[0].count);
  const auto items = static_cast<uint32_t>(RandomGraph(1).types[1].count);
  const auto pairs = [](const std::vector<uint32_t>& src,
                        const std::vector<uint32_t>& dst,
                        const std::vector<uint32_t>& negatives = {}) {
    JobSpec spec;
    spec.seed_kind = SeedKind::kEdge;
    spec.split.clear();
    spec.seed_type = "user__buys__item";
    spec.fanouts = {2};
    v1::SampleRequest request = SampleRequestOf(spec, {}, 0);
    request.set_explicit_ids(Raw(src));
    request.set_explicit_dst_ids(Raw(dst));
    request.set_explicit_negative_ids(Raw(negatives));
    return CallSample(*rich_->Stub(0), request).status;
  };
  EXPECT_EQ(pairs({0, users - 1}, {items - 1, 0}), absl::OkStatus());
  EXPECT_EQ(pairs({0, 1}, {0, 1}, {0, items - 1}), absl::OkStatus());
  ExpectRefused(pairs({users}, {0}), kInvalid,
                NotInRange("explicit_ids[0]", users));
  ExpectRefused(pairs({0}, {items}), kInvalid,
                NotInRange("explicit_dst_ids[0]", items));
  ExpectRefused(pairs({0}, {0}, {items}), kInvalid,
                NotInRange("explicit_negative_ids[0]", items));
  ExpectRefused(
      pairs({0, 1}, {0}), kInvalid,
      "2 explicit seeds with 1 destinations, 0 negatives and 0 times");
  ExpectRefused(
      pairs({0, 1}, {0, 1}, {0, 1, 2}), kInvalid,
      "2 explicit seeds with 2 destinations, 3 negatives and 0 times");
}

}  // namespace
}  // namespace millrace
