// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/rank_state.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/field_error.h"

namespace millrace::testing {
namespace {

TEST(RankStateTest, ReadsWhatItWrites) {
  for (const RankState& state :
       {RankState{}, RankState{17, true, {}},
        RankState{int64_t{1} << 62, false,
                  absl::InvalidArgumentError("lr 7: too much\ngive less")},
        RankState{5, false, UsageError("--lr 7: too much\ngive less")},
        RankState{3, false, absl::UnknownError("")}}) {
    const std::optional<RankState> read = RankStateFrom(ToText(state));
    ASSERT_TRUE(read.has_value()) << ToText(state);
    EXPECT_EQ(read->beats, state.beats);
    EXPECT_EQ(read->finished, state.finished);
    EXPECT_EQ(read->failure, state.failure);
  }
}

TEST(RankStateTest, RefusesInvalidText) {
  for (const char* text :
       {"", "1", "1 0", "1 0 0", "1 0 0 0", "x 0 0 0 ", "1 x 0 0 ", "1 0 x 0 ",
        "1 0 0 x ", "99999999999999999999 0 0 0 "}) {
    EXPECT_FALSE(RankStateFrom(text).has_value()) << text;
  }
}

TEST(RankStateTest, SanitizesAMessage) {
  const auto state = RankStateFrom("1 0 13 0 a\x1b[31m\nb\x7f\xc3\xa9");
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->failure.message(), "a?[31m\nb?\xc3\xa9");
  const auto longer = RankStateFrom("1 0 13 0 " + std::string(1 << 20, 'x'));
  ASSERT_TRUE(longer.has_value());
  EXPECT_EQ(longer->failure.message(), std::string(4000, 'x'));
  // A blank and a line end are no control characters, those before are.
  EXPECT_EQ(RankStateFrom("1 0 13 0 a b\nc\x1f\x01")->failure.message(),
            "a b\nc??");
}

}  // namespace
}  // namespace millrace::testing
