// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/log_lines.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

// Opens a file, begins it and writes a line.
absl::Status WriteLine(const std::string& path, bool append,
                       const std::string& line) {
  MILLRACE_ASSIGN_OR_RETURN(LineFile file, LineFile::Open(path, append));
  MILLRACE_RETURN_IF_ERROR(file.Begin());
  MILLRACE_RETURN_IF_ERROR(file.Write(line));
  return file.Sync();
}

TEST(LineFileTest, TruncatesOrAppends) {
  const std::string path = TestDirectory("keeps") / "log";
  std::ofstream(path) << "old\n";
  EXPECT_TRUE(WriteLine(path, /*append=*/true, "new").ok());
  EXPECT_EQ(ContentOf(path), "old\nnew\n");
  EXPECT_TRUE(WriteLine(path, /*append=*/false, "new").ok());
  EXPECT_EQ(ContentOf(path), "new\n");
}

TEST(LineFileTest, RefusesAFileThatAnotherRunWrites) {
  const std::string path = TestDirectory("two_runs") / "log";
  auto first = LineFile::Open(path, /*append=*/false);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(first->Begin().ok());
  ASSERT_TRUE(first->Write("line").ok());
  for (const bool append : {false, true}) {
    const absl::Status status = WriteLine(path, append, "other");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(path), HasSubstr("\nwait until it has ended")));
  }
  EXPECT_EQ(ContentOf(path), "line\n");
  *first = LineFile();
  EXPECT_TRUE(WriteLine(path, /*append=*/true, "other").ok());
  EXPECT_EQ(ContentOf(path), "line\nother\n");
}

TEST(LineFileTest, DevicesAreNotLocked) {
  auto first = LineFile::Open("/dev/null", /*append=*/false);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->Begin().ok());
  EXPECT_TRUE(WriteLine("/dev/null", /*append=*/false, "line").ok());
}

// The shell passes such a descriptor by 3>log and /dev/fd/3.
TEST(LineFileTest, WritesToADescriptor) {
  const std::string path = TestDirectory("descriptor") / "log";
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  ASSERT_GE(fd.get(), 0);
  const absl::Status status = WriteLine(absl::StrCat("/dev/fd/", fd.get()),
                                        /*append=*/false, "line");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(ContentOf(path), "line\n");
}

TEST(LineFileTest, KnowsAFileByAnyName) {
  const auto folder = TestDirectory("names");
  const auto identity = [&folder](const char* name) {
    return LineFile::Open(folder / name, /*append=*/true)->identity();
  };
  std::filesystem::create_symlink("log", folder / "link");
  EXPECT_EQ(identity("log"), identity("link"));
  EXPECT_NE(identity("log"), identity("other"));
}

// Tries lines shorter and longer than the part that is read first.
TEST(LineFileTest, CutsOffATornLine) {
  const std::string path = TestDirectory("torn") / "log";
  for (const size_t whole : {0u, 1u, 100000u}) {
    for (const size_t torn : {0u, 1u, 100000u}) {
      const std::string kept = whole == 0 ? "" : std::string(whole, 'a') + "\n";
      std::ofstream(path) << kept << std::string(torn, 'b');
      ASSERT_TRUE(WriteLine(path, /*append=*/true, "new").ok());
      EXPECT_EQ(ContentOf(path), kept + "new\n") << whole << " " << torn;
    }
  }
}

TEST(LineFileTest, NamesTheFileThatIsFull) {
  const absl::Status status = WriteLine("/dev/full", /*append=*/true, "line");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("/dev/full"), absl::string_view::npos);
}

TEST(LastAttemptTest, IsReadFromTheLastCompleteLine) {
  const std::string path = TestDirectory("attempt") / "log";
  EXPECT_EQ(*LastAttempt(path), -1);
  std::ofstream(path) << "";
  EXPECT_EQ(*LastAttempt(path), -1);
  std::ofstream(path) << Line(0, 3) << "\n" << Line(1, 3) << "\n";
  EXPECT_EQ(*LastAttempt(path), 1);
  // One rank died within its line, or found the disk full, before another's
  // line.
  const std::string torn = Line(2, 3).substr(0, 30);
  std::ofstream(path, std::ios::app) << torn;
  EXPECT_EQ(*LastAttempt(path), 1);
  std::ofstream(path, std::ios::app) << Line(2, 3) << "\n" << torn;
  EXPECT_EQ(*LastAttempt(path), 2);
  std::ofstream(path, std::ios::app) << "\n" << Line(12, 50000) << "\n";
  EXPECT_EQ(*LastAttempt(path), 12);
}

TEST(LastAttemptTest, MayHaveNoBatch) {
  const std::string path = TestDirectory("attempt_start") / "log";
  const std::string start = AttemptLine({.attempt = 3, .checkpoint = "0:15"});
  EXPECT_EQ(start, R"({"attempt":3,"checkpoint":"0:15"})");
  std::ofstream(path) << Line(2, 3) << "\n" << start.substr(0, 20);
  EXPECT_EQ(*LastAttempt(path), 2);
  std::ofstream(path) << Line(2, 3) << "\n" << start << "\n";
  EXPECT_EQ(*LastAttempt(path), 3);
}

TEST(RunLogLinesTest, MetricsAreJson) {
  MetricsRecord record;
  record.epoch = 3;
  record.step = 4;
  record.loss = 0.5;
  record.metrics = {.train = 0.25, .valid = 0.75, .test = 1};
  record.seconds = 1.5;
  record.wait_seconds = 2.5;
  record.copy_seconds = 3.5;
  record.compute_seconds = 4.5;
  record.eval_seconds = 5.5;
  record.cpu_seconds = 6.5;
  const std::string times =
      "\"seconds\":1.5,\"wait_seconds\":2.5,\"copy_seconds\":3.5,"
      "\"compute_seconds\":4.5,\"eval_seconds\":5.5,\"cpu_seconds\":6.5";
  EXPECT_EQ(MetricsLine(record),
            "{\"epoch\":3,\"step\":4,\"loss\":0.5,\"train\":0.25,\"valid\":"
            "0.75,\"test\":1.0," +
                times + "}");
  record.loss.reset();
  record.metrics = {};
  record.best_epoch = 2;
  EXPECT_EQ(MetricsLine(record),
            "{\"epoch\":3,\"step\":4,\"loss\":null,\"train\":null,\"valid\":"
            "null,\"test\":null," +
                times + ",\"best_epoch\":2}");
}

TEST(RunLogLinesTest, AnEpochIsALineForPeople) {
  MetricsRecord record;
  record.epoch = 3;
  record.seconds = 1.25;
  record.wait_seconds = 0.05;
  record.eval_seconds = 0.5;
  EXPECT_EQ(EpochLine(record),
            "epoch 3  1.75 s (waiting 0.05, evaluating "
            "0.50)");
  record.loss = 0.5321;
  record.metrics = {.train = 0.981, .valid = 0.791, .test = 0.804};
  EXPECT_EQ(EpochLine(record),
            "epoch 3  loss 0.532100  train 0.9810  valid 0.7910  test 0.8040  "
            "1.75 s (waiting 0.05, evaluating 0.50)");
}

TEST(RunLogLinesTest, ABatchHasItsSeedsAndTheirDigest) {
  ConsumedRecord record = {.attempt = 1,
                           .checkpoint = "0:2",
                           .epoch = 3,
                           .batch = 4,
                           .rank = 5,
                           .seeds = {6, 7},
                           .dst = {},
                           .digest = "ab"};
  EXPECT_EQ(ConsumedLine(record),
            "{\"attempt\":1,\"checkpoint\":\"0:2\",\"epoch\":3,\"batch\":4,"
            "\"rank\":5,\"seeds\":[6,7],\"digest\":\"ab\"}");
  record.dst = {8, 9};
  EXPECT_EQ(ConsumedLine(record),
            "{\"attempt\":1,\"checkpoint\":\"0:2\",\"epoch\":3,\"batch\":4,"
            "\"rank\":5,\"seeds\":[6,7],\"dst\":[8,9],\"digest\":\"ab\"}");
}

}  // namespace
}  // namespace millrace::testing
