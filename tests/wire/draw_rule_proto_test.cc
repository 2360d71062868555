// SPDX-License-Identifier: Apache-2.0
// The rules of drawing on the wire.
#include <gtest/gtest.h>

#include <cctype>
#include <iterator>
#include <string>

#include "common/sample/draw_rule.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

TEST(DrawRuleProtoTest, MessagesHaveTheNumbersOfTheTable) {
  EXPECT_EQ(v1::ExpandRequest::Rule_descriptor()->value_count(),
            static_cast<int>(std::size(kDrawRules)));
  for (const DrawRuleInfo& rule : kDrawRules) {
    std::string name = "RULE_";
    for (const char c : rule.name) name += static_cast<char>(std::toupper(c));
    v1::ExpandRequest::Rule number;
    ASSERT_TRUE(v1::ExpandRequest::Rule_Parse(name, &number)) << name;
    EXPECT_EQ(static_cast<int>(number), static_cast<int>(rule.rule)) << name;
  }
}

}  // namespace
}  // namespace millrace
