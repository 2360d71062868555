// SPDX-License-Identifier: Apache-2.0
#include "common/base/child_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/captured_output.h"

namespace millrace {
namespace {

using testing::CapturedOutput;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

ChildLog OpenLog() {
  return ChildLog::Open({.prefix = "[child] ",
                         .members = "\"rank\":7,",
                         .component = LogComponent::kTrain})
      .value();
}

// Writes as the child does.
void WriteTo(const ChildLog& log, const std::string& text) {
  ASSERT_EQ(write(log.write_end(), text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
}

// Returns what stderr shows once a child has written `text` and ended.
std::string CopyOf(const std::string& text) {
  CapturedOutput output(STDERR_FILENO);
  ChildLog log = OpenLog();
  WriteTo(log, text);
  log.CloseWriteEnd();
  log.Forward();
  EXPECT_LT(log.fd(), 0);
  return output.Stop();
}

TEST(ChildLogTest, CopiesWholeLinesAfterThePrefix) {
  ChildLog log = OpenLog();
  CapturedOutput first(STDERR_FILENO);
  WriteTo(log, "one\ntw");
  log.Forward();
  EXPECT_EQ(first.Stop(), "[child] one\n");
  CapturedOutput second(STDERR_FILENO);
  WriteTo(log, "o\n\nthree");
  log.Forward();
  log.CloseWriteEnd();
  EXPECT_GE(log.fd(), 0);
  log.Forward();
  EXPECT_LT(log.fd(), 0);
  EXPECT_EQ(second.Stop(), "[child] two\n[child] \n[child] three\n");
}

TEST(ChildLogTest, KeepsTheLastEightLines) {
  CapturedOutput output(STDERR_FILENO);
  ChildLog log = OpenLog();
  for (int line = 1; line <= 10; ++line) WriteTo(log, absl::StrCat(line, "\n"));
  log.Forward();
  EXPECT_THAT(log.last_lines(),
              ElementsAre("3", "4", "5", "6", "7", "8", "9", "10"));
}

TEST(ChildLogTest, LinesAreEventsInJson) {
  SetLogFormat(LogFormat::kJson);
  const std::string event = CopyOf("{\"message\":\"an event\"}\n");
  const std::string other = CopyOf("say \"hi\"");
  SetLogFormat(LogFormat::kText);
  EXPECT_EQ(event, "{\"rank\":7,\"message\":\"an event\"}\n");
  EXPECT_THAT(other, StartsWith("{\"rank\":7,\"time\":\""));
  EXPECT_THAT(other, EndsWith("\n"));
  const auto json = nlohmann::json::parse(other);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["component"], "train");
  EXPECT_EQ(json["message"], "say \"hi\"");
}

}  // namespace
}  // namespace millrace
