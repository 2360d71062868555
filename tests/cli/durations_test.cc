// SPDX-License-Identifier: Apache-2.0
#include "common/cli/durations.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/field_error.h"

namespace millrace {
namespace {

TEST(ParseDurationOptionTest, TakesDurations) {
  EXPECT_EQ(ParseDurationOption("--wait", "0").value(), absl::ZeroDuration());
  EXPECT_EQ(ParseDurationOption("--wait", "500ms").value(),
            absl::Milliseconds(500));
  EXPECT_EQ(ParseDurationOption("--wait", "1h2m").value(), absl::Minutes(62));
}

TEST(ParseDurationOptionTest, NumbersAreSeconds) {
  EXPECT_EQ(ParseDurationOption("--wait", "5").value(), absl::Seconds(5));
  EXPECT_EQ(ParseDurationOption("--wait", "0.25").value(),
            absl::Milliseconds(250));
}

TEST(ParseDurationOptionTest, HasLimits) {
  const auto parse = [](const std::string& text) {
    return ParseDurationOption("--timeout", text, absl::Milliseconds(100),
                               absl::Hours(1));
  };
  EXPECT_EQ(parse("0.1").value(), absl::Milliseconds(100));
  EXPECT_EQ(parse("60m").value(), absl::Hours(1));
  for (const char* text : {"0", "99ms", "3601", "inf"}) {
    EXPECT_EQ(parse(text).status(),
              UsageError("--timeout \"" + std::string(text) +
                         "\" is not from 100ms to 1h"));
  }
}

TEST(ParseDurationOptionTest, NamesTheOptionAndWhatWasGiven) {
  for (const char* text : {"", "soon", "-1s", "-5", "5 s", "5,5", "1m30"}) {
    EXPECT_EQ(ParseDurationOption("--wait", text).status(),
              UsageError("--wait \"" + std::string(text) +
                         "\" is not a duration; write e.g. 500ms, 30s or 2m"));
  }
}

}  // namespace
}  // namespace millrace
