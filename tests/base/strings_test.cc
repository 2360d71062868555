// SPDX-License-Identifier: Apache-2.0
// Texts, and what a process has used.
#include "common/base/strings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/process_usage.h"
#include "common/base/quoted.h"

namespace millrace {
namespace {

TEST(StringsTest, QuotesAndEscapes) {
  EXPECT_EQ(Quoted(""), "\"\"");
  EXPECT_EQ(Quoted("a b"), "\"a b\"");
  EXPECT_EQ(Quoted("a\n\"\x01"), "\"a\\n\\\"\\x01\"");
}

TEST(StringsTest, CutsLongTexts) {
  EXPECT_EQ(Quoted("abcd", 4), "\"abcd\"");
  EXPECT_EQ(Quoted("abcde", 4), "\"abcd...\"");
  EXPECT_EQ(Quoted("\n\n", 1), "\"\\n...\"");
}

TEST(StringsTest, DropsSpacesAtBothEnds) {
  for (const std::string_view text : {"a b", " a b", "a b  ", "  a b "}) {
    EXPECT_EQ(WithoutSpaces(text), "a b");
  }
  EXPECT_EQ(WithoutSpaces("  "), "");
  EXPECT_EQ(WithoutSpaces(""), "");
  EXPECT_EQ(WithoutSpaces("\ta"), "\ta");
}

TEST(StringsTest, ConcatenatesViewsAndNumbers) {
  EXPECT_EQ(
      StrCat("a", std::string_view("bc").substr(1), std::string("d"), 7, -1.5),
      "acd7-1.5");
}

TEST(ProcessUsageTest, CountsCpuTimeAndPeakMemory) {
  const double before = ProcessCpuSeconds();
  EXPECT_GT(before, 0);
  std::vector<char> block(64 << 20, 'x');
  volatile uint64_t sum = 0;
  while (ProcessCpuSeconds() < before + 0.01) sum = sum + 1;
  EXPECT_LT(ProcessCpuSeconds(), before + 100);
  const int64_t peak = ProcessPeakRssBytes();
  EXPECT_GE(peak, static_cast<int64_t>(block.size()));
  // The kernel's own number, which may have grown since.
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") status >> kib;
  }
  EXPECT_LE(peak, (kib + 1024) * 1024);
}

}  // namespace
}  // namespace millrace
