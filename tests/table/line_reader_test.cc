// SPDX-License-Identifier: Apache-2.0
#include "common/table/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/test_directory.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

class LineReaderTest : public DirectoryTest {
 protected:
  std::filesystem::path Write(const std::string& name,
                              const std::string& text) {
    const std::filesystem::path path = directory_ / name;
    // "wT" writes plain text.
    gzFile file = gzopen(path.c_str(), name.ends_with(".gz") ? "wb" : "wT");
    EXPECT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
              static_cast<int>(text.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return path;
  }

  // Expects the lines that getline() would return, one after another.
  void ExpectLines(const std::string& name, const std::string& text,
                   const std::vector<std::string>& lines) {
    auto reader = LineReader::Open(Write(name, text));
    ASSERT_TRUE(reader.ok()) << reader.status();
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto line = reader->Next();
      ASSERT_TRUE(line.ok()) << line.status();
      ASSERT_TRUE(line->has_value()) << i;
      ASSERT_EQ(**line, lines[i]) << i;
      EXPECT_EQ(reader->line_number(), static_cast<int64_t>(i) + 1);
    }
    for (int i = 0; i < 2; ++i) {
      const auto end = reader->Next();
      ASSERT_TRUE(end.ok()) << end.status();
      EXPECT_FALSE(end->has_value());
    }
  }
};

// Tries lengths around those of the reads, for any size of file.
TEST_F(LineReaderTest, ReadsEveryLineOfFilesOfAnySize) {
  std::mt19937 random(1);
  for (const size_t longest : {3, 5'000, 300'000}) {
    for (const bool crlf : {false, true}) {
      std::uniform_int_distribution<size_t> length(0, longest);
      std::uniform_int_distribution<int> letter('a', 'z');
      std::vector<std::string> lines(40);
      std::string text;
      for (std::string& line : lines) {
        line.resize(length(random));
        for (char& c : line) c = static_cast<char>(letter(random));
        text += line + (crlf ? "\r\n" : "\n");
      }
      for (const char* name : {"lines.csv", "lines.csv.gz"}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(longest));
        ExpectLines(name, text, lines);
        // The result is the same if the last line has no line break.
        ExpectLines(name, text + "last", [&] {
          auto more = lines;
          more.push_back("last");
          return more;
        }());
      }
    }
  }
  ExpectLines("empty.csv", "", {});
  ExpectLines("empty.csv.gz", "", {});
}

// These are a few KB of gzip that expand to far more.
TEST_F(LineReaderTest, GivesLongLinesOfSmallFiles) {
  const std::vector<std::string> lines = {std::string(3 << 20, 'x'), "",
                                          std::string(5 << 20, 'y')};
  ExpectLines("dense.csv.gz", lines[0] + "\n\n" + lines[2], lines);
}

TEST_F(LineReaderTest, RefusesLinesAboveTheLimit) {
  auto reader = LineReader::Open(Write(
      "long.csv.gz", "1\n" + std::string(LineReader::kMaxLineBytes + 1, '0')));
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(reader->Next().ok());
  const auto line = reader->Next();
  EXPECT_TRUE(absl::IsInvalidArgument(line.status())) << line.status();
  EXPECT_THAT(std::string(line.status().message()), HasSubstr("line 2 is"));
}

TEST_F(LineReaderTest, AcceptsLinesAtTheLimit) {
  const std::string longest(LineReader::kMaxLineBytes, '0');
  ExpectLines("longest.csv.gz", "1\n" + longest + "\n2\n", {"1", longest, "2"});
}

TEST_F(LineReaderTest, NamesFilesThatAreCutOrNotGzip) {
  const auto path = Write("cut.csv.gz", std::string(100'000, '1') + "\n2\n");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 12);
  auto cut = LineReader::Open(path);
  ASSERT_TRUE(cut.ok()) << cut.status();
  absl::Status status;
  for (int i = 0; i < 3 && status.ok(); ++i) status = cut->Next().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cut.csv.gz: truncated gzip data"));

  const auto plain = Write("plain.csv", "1,2\n");
  std::filesystem::rename(plain, plain.string() + ".gz");
  const auto not_gzip = LineReader::Open(plain.string() + ".gz");
  EXPECT_TRUE(absl::IsDataLoss(not_gzip.status())) << not_gzip.status();
  EXPECT_THAT(std::string(not_gzip.status().message()), HasSubstr("(4 bytes)"));
  EXPECT_TRUE(absl::IsNotFound(LineReader::Open(plain).status()));
}

}  // namespace
}  // namespace millrace::testing
