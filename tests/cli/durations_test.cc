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

TEST(ParseDurationOptionTest, NamesTheOptionAndWhatWasGiven) {
  for (const char* text : {"", "soon", "-1s", "5", "5 s"}) {
    EXPECT_EQ(ParseDurationOption("--wait", text).status(),
              UsageError("--wait \"" + std::string(text) +
                         "\" is not a duration; write e.g. 500ms, 30s or 2m"));
  }
}

}  // namespace
}  // namespace millrace
