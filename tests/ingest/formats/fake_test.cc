// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/fake.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/ingest/split_import.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr FakeInput kSmall = {.nodes = 1000,
                              .average_degree = 0.0065,
                              .features = 6,
                              .classes = 3,
                              .seed = (uint64_t{1} << 32) + 7};

// The expected numbers were computed with another implementation of Philox.
TEST(FakeTest, DrawsEdgesAndFeaturesBySeed) {
  const auto graph = MakeFake(kSmall);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1u);
  const RawNodes& nodes = graph->nodes[0];
  EXPECT_EQ(nodes.name, "node");
  EXPECT_EQ(nodes.count, 1000);
  EXPECT_TRUE(nodes.count_is_chosen);
  ASSERT_EQ(graph->edges.size(), 1u);
  EXPECT_EQ(graph->RelationName(graph->edges[0]), "node__to__node");
  std::vector<int64_t> ends = *ReadIntegers(*graph->edges[0].endpoints);
  ASSERT_EQ(ends.size(), 14u);  // 6.5 edges are rounded to 7
  ends.resize(12);
  EXPECT_THAT(ends, ElementsAre(350, 462, 54, 579, 980, 71, 872, 900, 568, 31,
                                618, 216));
  const std::vector<int64_t> labels = *ReadIntegers(*nodes.label);
  ASSERT_EQ(labels.size(), 1000u);
  EXPECT_EQ(labels[0], 0);
  EXPECT_EQ(labels[5], 2);
  EXPECT_EQ(labels[999], 0);
  ASSERT_EQ(nodes.feature->width(), 6);
  std::vector<float> features(6000);
  ASSERT_EQ(*(*nodes.feature->Open())->ReadFloats(1000, features.data()), 1000);
  EXPECT_THAT(std::vector<float>(features.begin(), features.begin() + 6),
              ElementsAreArray({0.42020416259765625f, 0.7685830593109131f,
                                0.3002493381500244f, -0.079559326171875f,
                                0.2577768564224243f, 0.20329666137695312f}));
  EXPECT_THAT(std::vector<float>(features.end() - 6, features.end()),
              ElementsAreArray({0.5358757972717285f, -0.07265841960906982f,
                                0.9910606145858765f, 1.4302104711532593f,
                                -0.8306986093521118f, 0.1910078525543213f}));
}

TEST(FakeTest, HasNoFeaturesOrEdgesIfNoneAreAskedFor) {
  const auto graph =
      MakeFake({.nodes = 1, .average_degree = 0, .features = 0, .classes = 1});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes[0].feature, nullptr);
  EXPECT_EQ(graph->edges[0].endpoints->rows(), 0);
}

TEST(FakeTest, ChecksItsLimits) {
  struct Case {
    int64_t nodes;
    double degree;
    int64_t features, classes;
    const char* what;  // null: it is accepted
  };
  const int64_t million = int64_t{1} << 20;
  for (const Case& c :
       {Case{0, 1, 1, 1, "nodes 0 is out of range: at least 1"},
        Case{-3, 1, 1, 1, "nodes -3 is out of range: at least 1"},
        Case{1, 1, 1, 1, nullptr},
        Case{9, 1, 1, 0,
             "classes 0 is out of range: 1 to the number of nodes, 9"},
        Case{9, 1, 1, 10,
             "classes 10 is out of range: 1 to the number of nodes, 9"},
        Case{9, 1, 1, 9, nullptr},
        Case{9, 1, -1, 1, "features -1 is out of range: at least 0"},
        Case{9, -0.5, 1, 1,
             "average_degree -0.5: -4.5 edges are not between 0 and 2^40"},
        Case{9, std::numeric_limits<double>::quiet_NaN(), 1, 1,
             "average_degree nan: "},
        Case{million, 1048576, 1, 1, nullptr},
        Case{million, 1048576.5, 1, 1, "edges are not between 0 and 2^40"}}) {
    const auto graph = MakeFake({.nodes = c.nodes,
                                 .average_degree = c.degree,
                                 .features = c.features,
                                 .classes = c.classes});
    if (c.what == nullptr) {
      EXPECT_TRUE(graph.ok()) << graph.status();
    } else {
      EXPECT_THAT(std::string(graph.status().message()), HasSubstr(c.what));
    }
  }
}

}  // namespace
}  // namespace millrace
