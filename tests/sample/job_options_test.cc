// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_options.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace millrace {
namespace {

TEST(JobOptionsTest, NamesAndOptionsAreDifferent) {
  std::set<std::string_view> names, options;
  for (const JobOption& option : JobOptions()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(options.insert(option.option).second) << option.option;
    EXPECT_EQ(FindJobOption(option.name), &option);
  }
  EXPECT_EQ(FindJobOption("batch-size"), nullptr);
}

TEST(JobOptionsTest, ADefaultJobHasAllDefaults) {
  for (const JobOption& option : JobOptions()) {
    EXPECT_TRUE(HasDefault(JobSpec(), option)) << option.name;
  }
}

}  // namespace
}  // namespace millrace
