// SPDX-License-Identifier: Apache-2.0
#include "common/graph/label_summary.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// The summary of a dataset and of a store in three partitions, which must
// agree.
LabelSummary Summarize(Array labels) {
  testing::TestGraph graph;
  graph.types = {{.name = "bare", .count = 2},
                 {.count = labels.rows(), .label = labels}};
  graph.relations = {{.edges = {}}};
  std::vector<LabelSummary> both;
  for (const int parts : {0, 3}) {
    const auto labels_of =
        SummarizeLabels(*testing::TestStore(graph, parts).Open());
    EXPECT_TRUE(labels_of.ok()) << labels_of.status();
    EXPECT_FALSE((*labels_of)[0].has_value());
    both.push_back(*(*labels_of)[1]);
  }
  EXPECT_EQ(LabelText(both[0]), LabelText(both[1]));
  EXPECT_EQ(both[0].largest_node, both[1].largest_node);
  EXPECT_EQ(both[0].sparse, both[1].sparse);
  return both[1];
}

template <typename T>
LabelSummary Summarize(std::vector<T> labels) {
  return Summarize(Array::Adopt(std::move(labels)));
}

TEST(LabelSummaryTest, CountsClassesAndLabelledNodes) {
  const LabelSummary summary =
      Summarize(std::vector<int64_t>{0, 2, -1, 1, 2, -7, 2});
  EXPECT_EQ(summary.labelled, 5);
  EXPECT_EQ(summary.classes(), 3u);
  EXPECT_EQ(summary.largest_node, 1);
  EXPECT_FALSE(summary.sparse);
  EXPECT_EQ(LabelText(summary), "labels of 5 nodes in 3 classes");
  EXPECT_EQ(LabelText(Summarize(std::vector<int64_t>{-1, 0})),
            "labels of 1 node in 1 class");
  EXPECT_EQ(LabelText(Summarize(std::vector<int64_t>{-1, -1})),
            "labels of 0 nodes");
}

TEST(LabelSummaryTest, FindsSentinels) {
  const LabelSummary summary =
      Summarize(std::vector<int64_t>{0, 1, 10'000'000, 1, 10'000'000});
  EXPECT_TRUE(summary.sparse);
  EXPECT_EQ(summary.largest_node, 2);
  EXPECT_EQ(SparseClassesText(summary, "node"),
            "most of the 10000001 classes of node have no node: the largest "
            "label is 10000000, of node 2; if it stands for nodes without a "
            "label, use -1 for them");
  EXPECT_EQ(
      Summarize(std::vector<int64_t>{0, std::numeric_limits<int64_t>::max()})
          .classes(),
      uint64_t{1} << 63);
}

TEST(LabelSummaryTest, HalfOfTheClassesAreEnough) {
  EXPECT_FALSE(Summarize(std::vector<int64_t>{3, 1, 1, 1}).sparse);
  EXPECT_TRUE(Summarize(std::vector<int64_t>{4, 1, 1, 1}).sparse);
}

TEST(LabelSummaryTest, IntegralFloatsAreClasses) {
  const LabelSummary summary = Summarize(std::vector<float>{1, NAN, 0, -1});
  EXPECT_EQ(LabelText(summary), "labels of 2 nodes in 2 classes");
  // These are values to predict, not classes.
  EXPECT_EQ(LabelText(Summarize(std::vector<float>{1, NAN, 0.5F, -1})),
            "labels of 3 nodes");
}

TEST(LabelSummaryTest, RowsOfSeveralLabelsCountOnce) {
  const Array values =
      Array::Adopt(std::vector<float>{NAN, NAN, 1, NAN, 0, 1}, {3, 2});
  EXPECT_EQ(LabelText(Summarize(values)), "labels of 2 nodes");
  EXPECT_EQ(LabelText(Summarize(
                Array::Adopt(std::vector<int64_t>{-1, -1, 0, -1}, {2, 2}))),
            "labels of 1 node");
}

}  // namespace
}  // namespace millrace
