// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/families.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace millrace {
namespace {

TEST(FamiliesTest, PrintsValuesWithoutLabels) {
  EXPECT_EQ(PrintMetrics({GaugeFamily("a_seconds", "How long.", 0.5),
                          CounterFamily("b_total", "How many.", 3)}),
            "# HELP a_seconds How long.\n"
            "# TYPE a_seconds gauge\n"
            "a_seconds 0.5\n"
            "# HELP b_total How many.\n"
            "# TYPE b_total counter\n"
            "b_total 3\n");
}

TEST(FamiliesTest, PrintsEachValueWithItsLabels) {
  EXPECT_EQ(
      PrintMetrics(
          {GaugeFamily("a", "A.",
                       {{{{"place", "gpu"}}, 1}, {{{"place", "cpu"}}, 2}}),
           CounterFamily("b_total", "B.",
                         {{{{"method", "Sample"}, {"code", "OK"}}, 7}})}),
      "# HELP a A.\n"
      "# TYPE a gauge\n"
      "a{place=\"gpu\"} 1\n"
      "a{place=\"cpu\"} 2\n"
      "# HELP b_total B.\n"
      "# TYPE b_total counter\n"
      "b_total{method=\"Sample\",code=\"OK\"} 7\n");
}

TEST(FamiliesTest, EscapesLabels) {
  const std::string text =
      PrintMetrics({GaugeFamily("a", "A.", {{{{"path", "C:\\\"x\"\n"}}, 1}})});
  EXPECT_NE(text.find(R"(a{path="C:\\\"x\"\n"} 1)"), std::string::npos) << text;
}

TEST(FamiliesTest, PrintsWholeNumbersExactly) {
  const std::string text =
      PrintMetrics({GaugeFamily("a", "A.", 1234567890123456)});
  EXPECT_NE(text.find("\na 1234567890123456\n"), std::string::npos) << text;
}

TEST(FamiliesTest, TakesNumbersOfAnyType) {
  const uint64_t bytes = 1 << 20;
  EXPECT_EQ(PrintMetrics({GaugeFamily("a", "A.", true),
                          CounterFamily("b_total", "B.", bytes),
                          GaugeFamily("c", "C.", {{{{"of", "d"}}, -3}})}),
            "# HELP a A.\n"
            "# TYPE a gauge\n"
            "a 1\n"
            "# HELP b_total B.\n"
            "# TYPE b_total counter\n"
            "b_total 1048576\n"
            "# HELP c C.\n"
            "# TYPE c gauge\n"
            "c{of=\"d\"} -3\n");
}

TEST(FamiliesTest, AddsFamiliesInOrder) {
  MetricFamilies all = {GaugeFamily("a", "A.", 1)};
  AddFamilies({GaugeFamily("b", "B.", 2), GaugeFamily("c", "C.", 3)}, all);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].name, "b");
  EXPECT_EQ(all[2].name, "c");
}

}  // namespace
}  // namespace millrace
