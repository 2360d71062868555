// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/field_error.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

TEST(JobTextsTest, ReadsFanouts) {
  EXPECT_THAT(*ParseFanouts("15, 10,-1"), ElementsAre(15, 10, -1));
  for (const char* text : {"", "15,", "a", "15;10", "-2", "99999999999"}) {
    const absl::Status status = ParseFanouts(text, "eval_fanouts").status();
    ASSERT_TRUE(GetFieldError(status).has_value()) << text;
    EXPECT_EQ(GetFieldError(status)->field, "eval_fanouts");
  }
}

TEST(JobTextsTest, ReadsNegatives) {
  for (const char* text :
       {"none", "binary:1.5", "triplet:2", "shared:7", "in-batch"}) {
    const std::string given = std::string(text) == "none" ? "" : text;
    const auto negatives = ParseNegatives(given);
    ASSERT_TRUE(negatives.ok()) << negatives.status();
    EXPECT_EQ(FormatNegatives(*negatives), text);
  }
  for (const char* text :
       {"none", "binary", "binary:", "binary:x", "in-batch:2", "all:1"}) {
    EXPECT_FALSE(ParseNegatives(text).ok()) << text;
  }
}

}  // namespace
}  // namespace millrace
