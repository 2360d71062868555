// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/log_limit.h"
#include "common/base/log_line.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"
#include "tests/support/captured_log.h"
#include "tests/support/captured_output.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

// What nobody should put into a log, but a client or a file might.
const std::string kHostile =
    "a\nfake\r line\x1b[31m\x01 \"q\" \\ = \xff\xfe \xc2\x85 \xe2\x80\xa8 "
    "\xc3\xa9";

std::string Line(const std::string& message, const LogFields& fields,
                 LogFormat format) {
  return LogLine({.time = absl::FromUnixMillis(1795890600123),  // of 2026-11-28
                  .level = LogLevel::kInfo,
                  .component = LogComponent::kServer,
                  .message = message,
                  .fields = fields},
                 format);
}

TEST(LogLineTest, TextHasTimeLevelComponentMessageAndFields) {
  EXPECT_EQ(Line("serving",
                 {{"partitions", "0,2"},
                  {"tls", false},
                  {"bytes", 7u},
                  {"seconds", 0.5},
                  {"hop", -1}},
                 LogFormat::kText),
            "2026-11-28T18:30:00.123Z info server serving partitions=0,2 "
            "tls=false bytes=7 seconds=0.5 hop=-1");
}

TEST(LogLineTest, DurationsAreRoundedDown) {
  const absl::Duration time = absl::Nanoseconds(1'234'567'999);
  EXPECT_THAT(
      Line("x", {{"ms", LogMilliseconds(time)}, {"s", LogSeconds(time)}},
           LogFormat::kText),
      HasSubstr(" x ms=1234.56 s=1.234"));
}

TEST(LogLineTest, TextQuotesValuesThatAreNotPlainWords) {
  EXPECT_THAT(
      Line("x",
           {{"a", "two words"}, {"b", ""}, {"c", "k=v"}, {"d", "say \"\\\""}},
           LogFormat::kText),
      HasSubstr(R"( x a="two words" b="" c="k=v" d="say \"\\\"")"));
}

TEST(LogLineTest, TextJoinsWhatHappenedAndWhatToDo) {
  EXPECT_THAT(Line("it broke\nmend it", {}, LogFormat::kText),
              HasSubstr("server it broke; mend it"));
}

TEST(LogLineTest, JsonHasTheSameWithTypes) {
  const Json line = Json::parse(
      Line("it broke\nmend it",
           {{"tls", true}, {"bytes", 7u}, {"seconds", 0.5}, {"hop", -1}},
           LogFormat::kJson));
  EXPECT_EQ(line, Json::parse(R"({"time": "2026-11-28T18:30:00.123Z",
      "level": "info", "component": "server", "message": "it broke",
      "advice": "mend it", "tls": true, "bytes": 7, "seconds": 0.5,
      "hop": -1})"));
}

TEST(LogLineTest, HostileTextStaysInItsLineAndField) {
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = Line(kHostile, {{"client", kHostile}}, format);
    for (const unsigned char c : line) {
      EXPECT_TRUE(c >= ' ' && c != 0x7f) << line;
    }
    EXPECT_THAT(line, Not(HasSubstr("\xc2\x85")));
    EXPECT_THAT(line, Not(HasSubstr("\xe2\x80\xa8")));
  }
  const Json json =
      Json::parse(Line("x", {{"client", kHostile}}, LogFormat::kJson));
  EXPECT_EQ(json["client"],
            "a\nfake\r line\x1b[31m\x01 \"q\" \\ = \xef\xbf\xbd\xef\xbf\xbd "
            "\xc2\x85 \xe2\x80\xa8 \xc3\xa9");
  EXPECT_THAT(Line("x", {{"client", kHostile}}, LogFormat::kText),
              HasSubstr(R"( client="a\x0afake\x0d line\x1b[31m\x01 \"q\" \\ = )"
                        R"(\xff\xfe \xc2\x85 \xe2\x80\xa8 )"
                        "\xc3\xa9\""));
}

// Sets up the log, and puts it back to what other tests expect.
class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override {
    SetLogFormat(LogFormat::kText);
    SetLogLevel(LogLevel::kInfo);
    spdlog::set_default_logger(before_);
  }

  template <typename Body>
  std::vector<std::string> Lines(const Body& body) {
    testing::CapturedOutput output(STDERR_FILENO);
    SetUpLog(LogComponent::kTrain);
    body();
    std::vector<std::string> lines =
        absl::StrSplit(output.Stop(), '\n', absl::SkipEmpty());
    return lines;
  }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(LogTest, EventsGoToStderrInTheFormatAsked) {
  const std::vector<std::string> lines = Lines([] {
    LogInfo("started");
    SetLogFormat(LogFormat::kJson);
    LogWarning(LogComponent::kFleet, "a\nb", {{"n", 1}});
  });
  ASSERT_EQ(lines.size(), 2);
  EXPECT_THAT(lines[0], HasSubstr("Z info train started"));
  const Json json = Json::parse(lines[1]);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["component"], "fleet");
  EXPECT_EQ(json["n"], 1);
}

TEST_F(LogTest, LevelLeavesOutLesserEvents) {
  const std::vector<std::string> lines = Lines([] {
    LogDebug(LogComponent::kServer, "one");
    SetLogLevel(LogLevel::kDebug);
    LogDebug(LogComponent::kServer, "two");
    SetLogLevel(LogLevel::kOff);
    LogError(LogComponent::kServer, "three");
  });
  ASSERT_EQ(lines.size(), 1);
  EXPECT_THAT(lines[0], HasSubstr("debug server two"));
}

TEST_F(LogTest, LevelCanBeReadAndRestored) {
  (void)Lines([] {
    for (const LogLevel level :
         {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning,
          LogLevel::kError, LogLevel::kOff}) {
      SetLogLevel(level);
      EXPECT_EQ(CurrentLogLevel(), level);
    }
  });
}

// ThreadSanitizer sees whether they disturb each other.
TEST_F(LogTest, LevelMayChangeWhileOthersLog) {
  const std::vector<std::string> lines = Lines([] {
    std::thread other([] {
      for (int i = 0; i < 1000; ++i) LogWarning(LogComponent::kFleet, "lost");
    });
    for (int i = 0; i < 100; ++i) {
      SetLogLevel(LogLevel::kOff);
      SetLogLevel(LogLevel::kInfo);
    }
    other.join();
    LogInfo("done");
  });
  EXPECT_THAT(lines.back(), HasSubstr("done"));
}

TEST_F(LogTest, EventsWithinARequestHaveItsId) {
  const std::string outer = "outer-1", inner = "inner-2";
  const std::vector<std::string> lines = Lines([&] {
    const LogRequest request(outer);
    LogInfo("one");
    {
      const LogRequest nested(inner);
      LogInfo("two", {{"n", 1}});
    }
    LogInfo("three");
  });
  ASSERT_EQ(lines.size(), 3);
  EXPECT_THAT(lines[0], HasSubstr("one request_id=outer-1"));
  EXPECT_THAT(lines[1], HasSubstr("two request_id=inner-2 n=1"));
  EXPECT_THAT(lines[2], HasSubstr("three request_id=outer-1"));
}

// A sink that fails in the middle of an event.
class FailingSink final : public spdlog::sinks::base_sink<std::mutex> {
  void sink_it_(const spdlog::details::log_msg&) override { throw 7; }
  void flush_() override {}
};

TEST_F(LogTest, EventThatFailedIsNotLoggedInPlaceOfTheNext) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "failing", std::make_shared<FailingSink>()));
  EXPECT_THROW(LogInfo("an event", {{"n", 1}}), int);
  const std::vector<std::string> lines =
      Lines([] { spdlog::warn("of a library"); });
  ASSERT_EQ(lines.size(), 1);
  EXPECT_THAT(lines[0], HasSubstr("Z warning train of a library"));
}

TEST_F(LogTest, LoggersOfOthersGetTheWholeText) {
  const testing::CapturedLog log;
  LogWarning("it broke\nmend it", {{"n", 1}});
  EXPECT_THAT(log.text(), HasSubstr("it broke; mend it n=1\n"));
}

TEST(LogLimitTest, CountsWhatIsLeftOutOfEachSecond) {
  LogLimit limit(2);
  const SteadyTime start = SteadyTime() + absl::Seconds(100);
  EXPECT_EQ(limit.Take(start), 0);
  EXPECT_EQ(limit.Take(start), 0);
  EXPECT_EQ(limit.Take(start), std::nullopt);
  EXPECT_EQ(limit.Take(start + absl::Milliseconds(999)), std::nullopt);
  EXPECT_EQ(limit.Take(start + absl::Seconds(1)), 2);
  EXPECT_EQ(limit.Take(start + absl::Seconds(1)), 0);
}

}  // namespace
}  // namespace millrace
