// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/store_builder.h"

namespace millrace::testing {
namespace {

std::string ContentOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Line(int64_t attempt, size_t seeds) {
  ConsumedRecord record;
  record.attempt = attempt;
  record.checkpoint = "0:0";
  record.seeds.assign(seeds, 123456789);
  return ConsumedLine(record);
}

TEST(LineFileTest, EmptiesOrKeeps) {
  const std::string path = TestDirectory("keeps") / "log";
  std::ofstream(path) << "old\n";
  ASSERT_TRUE(LineFile::Open(path, /*append=*/true)->Write("new").ok());
  EXPECT_EQ(ContentOf(path), "old\nnew\n");
  ASSERT_TRUE(LineFile::Open(path, /*append=*/false)->Write("new").ok());
  EXPECT_EQ(ContentOf(path), "new\n");
}

// Of lines shorter and longer than what is looked at first.
TEST(LineFileTest, CutsOffATornLine) {
  const std::string path = TestDirectory("torn") / "log";
  for (const size_t whole : {0u, 1u, 100000u}) {
    for (const size_t torn : {0u, 1u, 100000u}) {
      const std::string kept = whole == 0 ? "" : std::string(whole, 'a') + "\n";
      std::ofstream(path) << kept << std::string(torn, 'b');
      auto lines = LineFile::Open(path, /*append=*/true);
      ASSERT_TRUE(lines.ok()) << lines.status();
      ASSERT_TRUE(lines->Write("new").ok());
      EXPECT_EQ(ContentOf(path), kept + "new\n") << whole << " " << torn;
    }
  }
}

TEST(LineFileTest, NamesTheFileThatIsFull) {
  auto lines = LineFile::Open("/dev/full", /*append=*/true);
  ASSERT_TRUE(lines.ok()) << lines.status();
  const absl::Status status = lines->Write("line");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("/dev/full"), absl::string_view::npos);
}

TEST(LastAttemptTest, IsOfTheLastWholeLine) {
  const std::string path = TestDirectory("attempt") / "log";
  EXPECT_EQ(*LastAttempt(path), -1);
  std::ofstream(path) << "";
  EXPECT_EQ(*LastAttempt(path), -1);
  std::ofstream(path) << Line(0, 3) << "\n" << Line(1, 3) << "\n";
  EXPECT_EQ(*LastAttempt(path), 1);
  // One rank died within its line, or found the disk full, before another's.
  const std::string torn = Line(2, 3).substr(0, 30);
  std::ofstream(path, std::ios::app) << torn;
  EXPECT_EQ(*LastAttempt(path), 1);
  std::ofstream(path, std::ios::app) << Line(2, 3) << "\n" << torn;
  EXPECT_EQ(*LastAttempt(path), 2);
  std::ofstream(path, std::ios::app) << "\n" << Line(12, 50000) << "\n";
  EXPECT_EQ(*LastAttempt(path), 12);
}

}  // namespace
}  // namespace millrace::testing
