// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lineage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/store_builder.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A line with one seed, which by default is unique to its batch.
std::string Line(int attempt, const std::string& start, int epoch, int batch,
                 int seed = -1, int rank = 0) {
  if (seed < 0) seed = 1000 + batch;
  return "{\"attempt\":" + std::to_string(attempt) + ",\"checkpoint\":\"" +
         start + "\",\"epoch\":" + std::to_string(epoch) +
         ",\"batch\":" + std::to_string(batch) +
         ",\"rank\":" + std::to_string(rank) + ",\"seeds\":[" +
         std::to_string(seed) + "],\"digest\":\"ab\"}";
}

// The first line of an attempt.
std::string Start(int attempt, const std::string& start) {
  return "{\"attempt\":" + std::to_string(attempt) + ",\"checkpoint\":\"" +
         start + "\"}";
}

class LineageTest : public ::testing::Test {
 protected:
  // Writes a file with these lines and returns its path.
  std::string Log(const std::vector<std::string>& lines) {
    const auto path = directory_ / std::to_string(files_++);
    std::ofstream file(path);
    for (const std::string& line : lines) file << line << "\n";
    return path.string();
  }
  std::vector<std::string> FaultsOf(const std::vector<std::string>& lines,
                                    int64_t seeds = 0) {
    const auto lineage = Lineage::Read({Log(lines)});
    EXPECT_TRUE(lineage.ok()) << lineage.status();
    return lineage.ok() ? lineage->Faults(seeds) : std::vector<std::string>();
  }

 private:
  const std::filesystem::path directory_ = TestDirectory("lineage");
  int files_ = 0;
};

TEST_F(LineageTest, LaterAttemptsMakeLinesVoid) {
  std::vector<std::string> valid;
  const auto lineage = Lineage::Read(
      {Log({Line(0, "0:0", 0, 0), Line(0, "0:0", 0, 1), Line(0, "0:0", 0, 2),
            Line(1, "0:1", 0, 1), Line(1, "0:1", 0, 2), Line(1, "0:1", 1, 0),
            Line(2, "0:2", 0, 2), Line(2, "0:2", 1, 0)})},
      [&](const std::string& line) { valid.push_back(line); });
  ASSERT_TRUE(lineage.ok()) << lineage.status();
  EXPECT_THAT(valid, ElementsAre(Line(0, "0:0", 0, 0), Line(1, "0:1", 0, 1),
                                 Line(2, "0:2", 0, 2), Line(2, "0:2", 1, 0)));
  EXPECT_EQ(lineage->attempts().at(0).void_lines, 2);
  EXPECT_EQ(lineage->attempts().at(1).void_lines, 2);
  EXPECT_EQ(lineage->attempts().at(1).lines, 3);
  EXPECT_EQ(lineage->attempts().at(2).void_lines, 0);
  EXPECT_EQ(lineage->epochs().at(0).seeds, 3);
  EXPECT_THAT(lineage->Faults(), ElementsAre());
}

// This happens with --drop-last, if a larger world finds no whole step left.
TEST_F(LineageTest, AttemptsWithoutABatchMakeLinesVoid) {
  std::vector<std::string> valid;
  const auto lineage = Lineage::Read(
      {Log({Start(0, "0:0"), Line(0, "0:0", 0, 0), Line(0, "0:0", 0, 1),
            Line(0, "0:0", 0, 2), Start(1, "0:1")}),
       Log({Start(0, "0:0"), Start(1, "0:1")})},
      [&](const std::string& line) { valid.push_back(line); });
  ASSERT_TRUE(lineage.ok()) << lineage.status();
  EXPECT_THAT(valid, ElementsAre(Line(0, "0:0", 0, 0)));
  EXPECT_EQ(lineage->attempts().at(0).lines, 3);
  EXPECT_EQ(lineage->attempts().at(0).void_lines, 2);
  EXPECT_EQ(lineage->attempts().at(1).lines, 0);
  EXPECT_EQ(lineage->torn_lines(), 0);
  EXPECT_THAT(lineage->Faults(1), ElementsAre());
}

TEST_F(LineageTest, CountsAllHosts) {
  const auto lineage =
      Lineage::Read({Log({Line(0, "0:0", 0, 0), Line(0, "0:0", 0, 2)}),
                     Log({Line(0, "0:0", 0, 1), Line(1, "0:2", 0, 2)})});
  ASSERT_TRUE(lineage.ok()) << lineage.status();
  EXPECT_EQ(lineage->attempts().at(0).void_lines, 1);
  EXPECT_THAT(lineage->Faults(3), ElementsAre());
}

// Two ranks were killed while writing lines; after one of the torn lines, a
// third rank's line follows without a line break.
TEST_F(LineageTest, IgnoresTornLines) {
  const auto lineage = Lineage::Read(
      {Log({Line(0, "0:0", 0, 0), Line(0, "0:0", 0, 1, 6, 1).substr(0, 40),
            Line(0, "0:0", 0, 1, 6, 2).substr(0, 9) + Line(0, "0:0", 0, 2), "",
            Line(1, "0:1", 0, 1), Line(1, "0:1", 0, 2, 7, 1),
            Line(1, "0:1", 0, 3).substr(0, 50)})});
  ASSERT_TRUE(lineage.ok()) << lineage.status();
  EXPECT_EQ(lineage->torn_lines(), 3);
  EXPECT_THAT(lineage->Faults(3), ElementsAre());
}

TEST_F(LineageTest, AcceptsTornLinesOnlyAtTheEndOfAnAttempt) {
  const std::string torn = Line(0, "0:0", 0, 1).substr(0, 40);
  const auto fault = ElementsAre(::testing::EndsWith(
      " is damaged: line 2 is torn, but no attempt ended there"));
  const auto fault3 = ElementsAre(HasSubstr("is damaged: line 3 is torn"));
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), torn}), ElementsAre());
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), torn, Line(0, "0:0", 0, 1)}),
              fault);
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), torn, torn}), fault);
  // After one rank's torn line, the other rank writes its line for that step
  // and stops.
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), torn,
                        Line(0, "0:0", 0, 1, 6, /*rank=*/1)}),
              ElementsAre());
  EXPECT_THAT(
      FaultsOf({Line(0, "0:0", 0, 0), torn, Line(0, "0:0", 0, 1, 6, /*rank=*/1),
                Line(0, "0:0", 0, 2)}),
      fault);
  // The start of another attempt ends this one, and belongs to no rank.
  EXPECT_THAT(FaultsOf({Start(0, "0:0"), Line(0, "0:0", 0, 0), torn,
                        Start(1, "0:1"), Line(1, "0:1", 0, 1)}),
              ElementsAre());
  EXPECT_THAT(FaultsOf({Start(0, "0:0"), Line(0, "0:0", 0, 0), torn, torn,
                        Start(1, "0:1")}),
              fault3);
}

TEST_F(LineageTest, NumbersAreIntegersInRange) {
  const std::string line = Line(0, "0:0", 0, 0);
  const auto torn = [&](const std::string& old, const std::string& replaced) {
    std::string other = line;
    const size_t place = other.find(old);
    EXPECT_NE(place, std::string::npos) << old;
    other.replace(place, old.size(), replaced);
    const auto lineage = Lineage::Read({Log({line, other})});
    return lineage.ok() ? lineage->torn_lines() : -1;
  };
  for (const std::string number :
       {"1e300", "1.5", "1.0", "18446744073709551615", "-1", "\"1\"", "null",
        "true", "[]"}) {
    for (const std::string name : {"attempt", "epoch", "batch", "rank"}) {
      const std::string key = "\"" + name + "\":";
      EXPECT_EQ(torn(key + "0", key + number), 1) << key << number;
    }
  }
  for (const char* seed : {"1e300", "1.5", "9223372036854775808", "\"1\""}) {
    EXPECT_EQ(torn("[1000]", "[" + std::string(seed) + "]"), 1) << seed;
  }
  EXPECT_EQ(torn("\"batch\":0", "\"batch\":4294967296"), 1);
  EXPECT_EQ(torn("\"0:0\"", "\"0:9223372036854775807\""), 1);
  EXPECT_EQ(torn("\"0:0\"", "\"-1:0\""), 1);
  EXPECT_EQ(torn("\"0:0\"", "\"0:-1\""), 1);
  EXPECT_EQ(torn("[1000]", "[9223372036854775807]"), 0);
}

TEST_F(LineageTest, RequiresAtLeastOneLine) {
  const auto fault = ElementsAre("there is no line of a batch");
  EXPECT_THAT(FaultsOf({}), fault);
  EXPECT_THAT(FaultsOf({"\x01\x02"}), fault);
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, -1)}), fault);
  EXPECT_THAT(FaultsOf({Start(0, "0:0")}), fault);
}

TEST_F(LineageTest, FindsEpochsThatAreMissing) {
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), Line(0, "0:0", 3, 0)}, 1),
              ElementsAre("epochs 1 to 2 are missing"));
  EXPECT_THAT(FaultsOf({Line(1, "1:0", 1, 0)}),
              ElementsAre("epochs 0 to 0 are missing"));
}

TEST_F(LineageTest, FindsDuplicatesAndOmissions) {
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), Line(0, "0:0", 0, 0, 5)}),
              ElementsAre("batch 0:0 occurs twice, in attempts 0 and 0"));
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), Line(0, "0:0", 0, 3)}),
              ElementsAre("epoch 0 lacks batches 1 to 2"));
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0, 5), Line(0, "0:0", 0, 1, 5)}),
              ElementsAre("epoch 0 has seed 5 twice, and perhaps others"));
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), Line(0, "0:0", 1, 0),
                        Line(0, "0:0", 1, 1), Line(0, "0:0", 2, 0)}),
              ElementsAre("epoch 0 has 1 batches, but another has 2"));
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0)}, 2),
              ElementsAre("epoch 0 has 1 seeds, not 2"));
  EXPECT_THAT(FaultsOf({Line(0, "0:0", 0, 0), Line(0, "0:0", 0, 1)}, 1),
              ElementsAre("epoch 0 has 2 seeds, not 1"));
}

TEST_F(LineageTest, NamesAtMost20Faults) {
  std::vector<std::string> lines = {Line(0, "0:0", 0, 0)};
  // Each further line is a batch that is there twice; the last fault is the
  // seed of all.
  for (int i = 0; i < 18; ++i) lines.push_back(lines[0]);
  EXPECT_EQ(FaultsOf(lines).size(), 19u);
  lines.push_back(lines[0]);
  EXPECT_EQ(FaultsOf(lines).size(), 20u);
  lines.push_back(lines[0]);
  EXPECT_EQ(FaultsOf(lines).size(), 20u);
}

TEST_F(LineageTest, EdgesMayRepeat) {
  std::string line = Line(0, "0:0", 0, 0, 5);
  std::string other = Line(0, "0:0", 0, 1, 5);
  for (std::string* edge : {&line, &other}) {
    edge->insert(edge->find(",\"digest\""), ",\"dst\":[7]");
  }
  EXPECT_THAT(FaultsOf({line, other}), ElementsAre());
}

// A log is read twice.
TEST_F(LineageTest, RefusesPipes) {
  const std::string pipe = Log({}) + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const absl::Status status = Lineage::Read({pipe}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(pipe + " is not a regular file"),
                    HasSubstr("write its lines to a file")));
}

TEST_F(LineageTest, RefusesTwoRuns) {
  const absl::Status status =
      Lineage::Read({Log({Line(1, "0:2", 0, 2)}), Log({Line(1, "0:4", 0, 4)})})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "attempt 1 starts from 0:2, but has a line of batch 0:4 that "
            "starts from 0:4\ngive the logs of one run; a run without --resume "
            "empties its log first");
  // A batch before the start of its attempt.
  EXPECT_THAT(
      std::string(
          Lineage::Read({Log({Line(1, "0:2", 0, 1)})}).status().message()),
      HasSubstr("attempt 1 starts from 0:2, but has a line of batch "
                "0:1 that starts from 0:2\n"));
  EXPECT_EQ(
      Lineage::Read({Log({Start(0, "0:0"), Start(1, "0:2"), Start(1, "0:4")})})
          .status()
          .code(),
      absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Lineage::Read({"/absent/log"}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace millrace::testing
