// SPDX-License-Identifier: Apache-2.0
#include "common/base/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/file/file.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

ProgressState Half() {
  return {.what = "read edges",
          .unit = "edges",
          .total = 4000,
          .done = 1000,
          .before = 0,
          .elapsed = absl::Seconds(30),
          .note = ""};
}

TEST(ProgressTest, ShowsTheRemainingTime) {
  EXPECT_EQ(ProgressText(Half(), /*bar=*/false),
            "read edges: 1k/4k edges 25%, 30.0 s, 33/s, 1m30s left");
  EXPECT_EQ(ProgressText(Half(), /*bar=*/true),
            "read edges: 1k/4k edges [#####...............] 25%, 30.0 s, 33/s, "
            "1m30s left");
}

TEST(ProgressTest, NumbersHaveThreeDigitsAndAUnit) {
  const std::vector<std::pair<int64_t, const char*>> cases = {
      {0, "job: 0 edges, "},
      {950, "job: 950 edges, "},
      {999, "job: 999 edges, "},
      {1000, "job: 1k edges, "},
      {12'345, "job: 12.3k edges, "},
      {999'499, "job: 999k edges, "},
      {999'999, "job: 1M edges, "},
      {4'560'000, "job: 4.56M edges, "},
      {7'000'000'000, "job: 7G edges, "},
      {20'000'000'000'000, "job: 20T edges, "},
      {3'000'000'000'000'000, "job: 3P edges, "},
      {5'000'000'000'000'000'000, "job: 5e+03P edges, "}};
  for (const auto& [done, text] : cases) {
    EXPECT_THAT(SummaryText({.what = "job",
                             .unit = "edges",
                             .total = -1,
                             .done = done,
                             .before = done,
                             .elapsed = absl::Seconds(1),
                             .note = ""}),
                ::testing::StartsWith(text));
  }
}

TEST(ProgressTest, BarIsEmptyAtTheStartAndFullAtTheEnd) {
  ProgressState state = Half();
  state.note = "slow";
  state.done = 0;
  EXPECT_EQ(ProgressText(state, true),
            "read edges: 0/4k edges [....................] 0%, 30.0 s, 0/s, "
            "slow");
  for (const int64_t done : {4000, 5000}) {  // more than was expected
    state.done = done;
    EXPECT_THAT(ProgressText(state, true),
                HasSubstr(" edges [####################] 100%, 30.0 s, "));
  }
  state.done = 3999;
  EXPECT_THAT(ProgressText(state, true),
              HasSubstr(" [###################.] 100%, "));
}

TEST(ProgressTest, ShowsNoTimeWithoutProgress) {
  ProgressState state = Half();
  state.done = 0;
  EXPECT_THAT(ProgressText(state, false), EndsWith(" 0%, 30.0 s, 0/s"));
  state.done = state.total;
  EXPECT_THAT(ProgressText(state, false), EndsWith(" 100%, 30.0 s, 133/s"));
  state.total = -1;
  EXPECT_EQ(ProgressText(state, true), "read edges: 4k edges, 30.0 s, 133/s");
}

TEST(ProgressTest, WorkDoneBeforeTheStartDoesNotCount) {
  ProgressState state = Half();
  state.before = 700;
  EXPECT_THAT(ProgressText(state, false),
              EndsWith(" 25%, 30.0 s, 10/s, 5m left"));
  state.before = state.done;
  EXPECT_THAT(ProgressText(state, false), EndsWith(" 25%, 30.0 s, 0/s"));
}

TEST(ProgressTest, LessThanASecondIsOne) {
  ProgressState state = Half();
  state.done = 3999;
  EXPECT_THAT(ProgressText(state, false), EndsWith(", 1s left"));
}

TEST(ProgressTest, WithoutAUnitShowsOnlyTheTime) {
  ProgressState state = Half();
  state.unit = "";
  state.total = -1;
  state.note = "8 parts";
  EXPECT_EQ(ProgressText(state, true), "read edges: 30.0 s, 8 parts");
  EXPECT_EQ(SummaryText(state), "read edges: 30.0 s, 8 parts");
}

TEST(ProgressTest, SummarySaysWhatWasDone) {
  EXPECT_EQ(SummaryText(Half()), "read edges: 1k edges, 30.0 s, 33/s");
}

// Replaces stderr by a terminal.
class ProgressTerminalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    screen_ = UniqueFd(posix_openpt(O_RDWR | O_NOCTTY));
    ASSERT_GE(screen_.get(), 0);
    ASSERT_EQ(grantpt(screen_.get()), 0);
    ASSERT_EQ(unlockpt(screen_.get()), 0);
    const UniqueFd terminal(open(ptsname(screen_.get()), O_RDWR | O_NOCTTY));
    ASSERT_GE(terminal.get(), 0);
    winsize size = {};
    size.ws_row = 24;
    size.ws_col = kColumns;
    ASSERT_EQ(ioctl(terminal.get(), TIOCSWINSZ, &size), 0);
    stderr_ = UniqueFd(dup(STDERR_FILENO));
    dup2(terminal.get(), STDERR_FILENO);
  }
  void TearDown() override { dup2(stderr_.get(), STDERR_FILENO); }

  // Everything written since the last call.
  std::string Read() const {
    std::string text;
    char buffer[4096];
    pollfd wait = {screen_.get(), POLLIN, 0};
    while (poll(&wait, 1, /*timeout=*/0) > 0) {
      const ssize_t got = read(screen_.get(), buffer, sizeof buffer);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

  // Repeats until something is drawn, since not every step draws.
  std::string AwaitBar(Progress& progress) const {
    std::string text;
    while (text.empty()) {
      progress.Set(10);
      text = Read();
    }
    return text;
  }

  static constexpr unsigned short kColumns = 60;
  UniqueFd screen_, stderr_;
};

TEST_F(ProgressTerminalTest, BarFitsInALine) {
  Progress progress("a job with a name of many words", 1000, "things");
  progress.SetNote("and a note that is much longer than the line");
  const std::string bar = AwaitBar(progress);
  EXPECT_THAT(bar, AllOf(HasSubstr("a job with"), Not(HasSubstr("\n"))));
  EXPECT_LT(bar.size(), kColumns + std::string(EraseLine()).size());
}

TEST_F(ProgressTerminalTest, BarDisappearsWithItsJob) {
  std::optional<Progress> progress;
  progress.emplace("job", 1000, "things");
  AwaitBar(*progress);
  progress.reset();
  EXPECT_EQ(Read(), EraseLine());
}

TEST_F(ProgressTerminalTest, SummaryReplacesIt) {
  std::optional<Progress> progress;
  progress.emplace("job", 1000, "things");
  AwaitBar(*progress);
  progress->Finish();
  EXPECT_THAT(Read(), AllOf(::testing::StartsWith(EraseLine()),
                            HasSubstr("job: 10 things"), EndsWith("\r\n")));
  progress.reset();
  EXPECT_EQ(Read(), "");
}

TEST_F(ProgressTerminalTest, NothingIsErasedElsewhere) {
  EXPECT_STRNE(EraseLine(), "");
  dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
  EXPECT_STREQ(EraseLine(), "");
}

}  // namespace
}  // namespace millrace
