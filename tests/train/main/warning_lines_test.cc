// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/warning_lines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/strings.h"
#include "tests/support/captured_output.h"

namespace millrace::testing {
namespace {

void Warn(const std::string& text) { TORCH_WARN(text); }

size_t CountOf(std::string_view part, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Returns what `body` logs, to whichever file the log goes.
template <typename Body>
std::string LogOf(Body&& body) {
  CapturedOutput out(STDOUT_FILENO);
  CapturedOutput err(STDERR_FILENO);
  body();
  return out.Stop() + err.Stop();
}

TEST(WarningLinesTest, LogsEachTextOnce) {
  WarningLines lines;
  const std::string text = LogOf([&lines] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&lines] {
        const c10::WarningUtils::WarningHandlerGuard guard(&lines);
        for (int step = 0; step < 50; ++step) {
          Warn("index_add has no deterministic implementation");
          Warn("cumsum has no deterministic implementation");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(CountOf("index_add has no", text), 1u) << text;
  EXPECT_EQ(CountOf("cumsum has no", text), 1u) << text;
}

TEST(WarningLinesTest, RemembersALimitedNumberOfTexts) {
  WarningLines lines;
  const c10::WarningUtils::WarningHandlerGuard guard(&lines);
  const std::string many = LogOf([] {
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < WarningLines::kTexts; ++i) {
        Warn(StrCat("text ", i, "."));
      }
    }
  });
  EXPECT_EQ(CountOf("text 0.", many), 1u);
  const std::string after = LogOf([] {
    Warn("another");
    Warn("text 0.");
  });
  EXPECT_EQ(CountOf("text 0.", after), 1u);
}

}  // namespace
}  // namespace millrace::testing
