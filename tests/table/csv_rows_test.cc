// SPDX-License-Identifier: Apache-2.0
#include "common/table/csv_rows.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/table/line_reader.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvRowsTest : public testing::DirectoryTest {
 protected:
  std::unique_ptr<RowSource> Open(const std::string& text, int64_t width = 0) {
    const std::filesystem::path path = directory_ / "f.csv";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    auto rows = OpenCsvRows(path, width);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *std::move(rows) : nullptr;
  }

  absl::StatusOr<std::vector<int64_t>> Integers(const std::string& text,
                                                int64_t width = 0) {
    const auto rows = Open(text, width);
    std::vector<int64_t> values(64);
    auto reader = rows->Open();
    if (!reader.ok()) return reader.status();
    const auto read = (*reader)->ReadIntegers(8, values.data());
    if (!read.ok()) return read.status();
    values.resize(static_cast<size_t>(*read * rows->width()));
    return values;
  }
  absl::StatusOr<double> Double(const std::string& text) {
    double value = -7;
    const auto read = (*Open(text)->Open())->ReadDoubles(1, &value);
    if (!read.ok()) return read.status();
    return value;
  }
  absl::StatusOr<float> Float(const std::string& text) {
    float value = -7;
    const auto read = (*Open(text)->Open())->ReadFloats(1, &value);
    if (!read.ok()) return read.status();
    return value;
  }
};

TEST_F(CsvRowsTest, ReadsLinesOfIntegers) {
  EXPECT_THAT(*Integers("1,2\n-3,4\n"), ElementsAre(1, 2, -3, 4));
  EXPECT_THAT(*Integers("1, 2\r\n 3 ,4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*Integers("-9223372036854775808,9223372036854775807\n"),
              ElementsAre(std::numeric_limits<int64_t>::min(),
                          std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(*Integers("", 2), ElementsAre());
  const auto rows = Open("1,2,3\n4,5,6\n");
  EXPECT_EQ(rows->width(), 3);
  EXPECT_EQ(rows->rows(), -1);
  EXPECT_EQ(rows->Where(7), StrCat(rows->name(), ": line 8"));
  // A few at a time.
  const auto reader = rows->Open().value();
  int64_t row[3];
  EXPECT_EQ(*reader->ReadIntegers(1, row), 1);
  EXPECT_THAT(row, ElementsAre(1, 2, 3));
  EXPECT_EQ(*reader->ReadIntegers(1, row), 1);
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
  EXPECT_EQ(*reader->ReadIntegers(1, row), 0);
}

TEST_F(CsvRowsTest, NamesTheFieldThatIsNoInteger) {
  struct Case {
    const char *text, *what;
    int64_t width = 0;
  };
  for (const Case& c :
       {Case{"9223372036854775808\n",
             "f.csv: line 1: field 1 is \"9223372036854775808\", not an "
             "integer of 64 bits"},
        Case{"-9223372036854775809\n", "field 1 is \"-92233"},
        Case{"1,2\n3,x\n", "line 2: field 2 is \"x\", not an integer"},
        Case{"1,2\n3,\n", "line 2: field 2 is \"\", not an integer"},
        Case{"1.0\n", "line 1: field 1 is \"1.0\", not an integer"},
        Case{"1 2\n", "line 1: field 1 is \"1 2\", not an integer"},
        Case{"+1\n", "line 1: field 1 is \"+1\", not an integer"},
        Case{"1,2\n3\n", "f.csv: line 2: 1 field where every line must have 2"},
        Case{"1\n2\n3,4\n", "line 3: 2 fields where every line must have 1"},
        Case{"1,2\n", "line 1: 2 fields where every line must have 3", 3},
        Case{"1,2\n\n", "line 2: 1 field where every line must have 2"}}) {
    const auto values = Integers(c.text, c.width);
    ASSERT_FALSE(values.ok()) << c.text;
    EXPECT_THAT(std::string(values.status().message()), HasSubstr(c.what));
  }
  std::ofstream(directory_ / "f.csv", std::ios::trunc).close();
  EXPECT_THAT(
      std::string(OpenCsvRows(directory_ / "f.csv", 0).status().message()),
      HasSubstr("f.csv: the file is empty"));
  EXPECT_TRUE(OpenCsvRows(directory_ / "f.csv", 1).ok());
  EXPECT_TRUE(absl::IsNotFound(OpenCsvRows(directory_ / "no", 1).status()));
}

TEST_F(CsvRowsTest, ReadsNumbersInTheRangeOfTheirType) {
  EXPECT_EQ(*Float("0.1\n"), 0.1f);
  EXPECT_EQ(*Float(" -2e3 "), -2000.f);
  EXPECT_EQ(*Float("inf"), std::numeric_limits<float>::infinity());
  EXPECT_EQ(*Double("0.1\n"), 0.1);
  EXPECT_EQ(*Double("1.7976931348623157e308"),
            std::numeric_limits<double>::max());
  EXPECT_EQ(*Double("4.9406564584124654e-324"), 4.9406564584124654e-324);
  for (const char* zero : {"0", "-0.0", "0e999", "0.000e-999"}) {
    EXPECT_EQ(*Double(zero), 0) << zero;
  }
  for (const char* wrong : {"1e309", "-1e309", "1e-330", "0.5x", " "}) {
    EXPECT_FALSE(Double(wrong).ok()) << wrong;
  }
  EXPECT_THAT(std::string(Double("1e309").status().message()),
              HasSubstr("f.csv: line 1: field 1 is \"1e309\", not a number "
                        "(float64: 0, or from 4.9e-324 to 1.8e+308)"));
  EXPECT_THAT(std::string(Float("x").status().message()),
              HasSubstr("f.csv: line 1: field 1 is \"x\", not a number "
                        "(float32)"));
}

TEST_F(CsvRowsTest, IntegralIsATableOfOnlyIntegers) {
  for (const char* text : {"1,2\n-3, 4\n", "0123456789\n", "1\r\n2\r\n"}) {
    EXPECT_TRUE(*Open(text)->Integral()) << text;
  }
  for (const char* text : {"1\n2.0\n", "1e3\n", "nan\n", "1\n2\nx"}) {
    EXPECT_FALSE(*Open(text)->Integral()) << text;
  }
}

TEST_F(CsvRowsTest, FindsCompressedFilesFirst) {
  EXPECT_EQ(FindCsv(directory_, "a"), std::nullopt);
  const auto missing = RequireCsv(directory_, "a");
  EXPECT_EQ(missing.status().message(),
            StrCat((directory_ / "a.csv.gz").string(),
                   ": no such file, with or without .gz"));
  std::ofstream(directory_ / "a.csv") << "b,c\nd\n";
  EXPECT_EQ(*RequireCsv(directory_, "a"), directory_ / "a.csv");
  std::ofstream(directory_ / "a.csv.gz") << "x";
  EXPECT_EQ(*RequireCsv(directory_, "a"), directory_ / "a.csv.gz");
  EXPECT_THAT(*ReadSmallCsv(directory_ / "a.csv"),
              ElementsAre(ElementsAre("b", "c"), ElementsAre("d")));
  std::ofstream(directory_ / "a.csv", std::ios::trunc).close();
  EXPECT_THAT(
      std::string(ReadSmallCsv(directory_ / "a.csv").status().message()),
      HasSubstr("a.csv: the file is empty"));
}

}  // namespace
}  // namespace millrace
