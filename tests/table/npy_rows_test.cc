// SPDX-License-Identifier: Apache-2.0
// .npy files written by NumPy; make_npy.py describes their contents.
#include "common/table/npy_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/ingest/split_import.h"
#include "tests/support/captured_log.h"
#include "tests/support/python.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NpyRowsTest : public testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    ASSERT_EQ(testing::RunPython(MILLRACE_PYTHON, "table/make_npy.py",
                                 {directory_.string()}),
              0);
  }

  std::filesystem::path File(const std::string& name) const {
    return directory_ / StrCat(name, ".npy");
  }

  using Opened = absl::StatusOr<std::unique_ptr<RowSource>>;

  static std::vector<int64_t> Integers(const Opened& rows) {
    EXPECT_TRUE(rows.ok()) << rows.status();
    const auto values = ReadIntegers(**rows);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.value_or(std::vector<int64_t>());
  }
  static std::vector<float> Floats(const Opened& rows) {
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<float> values(100);
    const auto read = (*rows)->Open().value()->ReadFloats(20, values.data());
    EXPECT_TRUE(read.ok()) << read.status();
    values.resize(static_cast<size_t>(*read * (*rows)->width()));
    return values;
  }
  static std::string Refusal(const Opened& rows) {
    if (!rows.ok()) return std::string(rows.status().message());
    return std::string(ReadIntegers(**rows).status().message());
  }
};

TEST_F(NpyRowsTest, ReadsAllDTypesInEveryOrder) {
  for (const char* order : {"le_", "be_"}) {
    for (const char* code : {"u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"}) {
      const std::string name = StrCat(order, code);
      SCOPED_TRACE(name);
      EXPECT_THAT(Integers(OpenNpyRows(File("numbers-" + name))),
                  ElementsAre(1, 0, 3));
      for (const char* layout : {"matrix-c_", "matrix-f_"}) {
        const auto rows = OpenNpyRows(File(layout + name));
        EXPECT_THAT(Integers(rows), ElementsAre(0, 1, 2, 10, 11, 12));
        EXPECT_EQ((*rows)->width(), 3);
        EXPECT_TRUE((*rows)->Integral().value());
      }
    }
    for (const char* code : {"f2", "f4", "f8"}) {
      const std::string name = StrCat(order, code);
      SCOPED_TRACE(name);
      EXPECT_THAT(Floats(OpenNpyRows(File("numbers-" + name))),
                  ElementsAre(1, 0, 3));
      for (const char* layout : {"matrix-c_", "matrix-f_"}) {
        const auto rows = OpenNpyRows(File(layout + name));
        EXPECT_THAT(Floats(rows), ElementsAre(0, 1, 2, 10, 11, 12));
        EXPECT_FALSE((*rows)->Integral().value());
      }
    }
  }
  EXPECT_THAT(Integers(OpenNpyRows(File("negative-i1"))), ElementsAre(-1, 5));
  EXPECT_THAT(Integers(OpenNpyRows(File("negative-i2"))), ElementsAre(-2, 5));
}

TEST_F(NpyRowsTest, ReadsBoolsAsZeroAndOne) {
  const auto column = OpenNpyRows(File("numbers-bool"));
  EXPECT_THAT(Integers(column), ElementsAre(1, 0, 1));
  EXPECT_THAT(Floats(column), ElementsAre(1, 0, 1));
  EXPECT_TRUE((*column)->Integral().value());
  EXPECT_THAT(Integers(OpenNpyRows(File("multi"))),
              ElementsAre(1, 0, 0, 0, 1, 1));
}

TEST_F(NpyRowsTest, ReadsEdgesOfEveryShape) {
  for (const char* name : {"columns", "rows", "t", "fortran", "int16"}) {
    SCOPED_TRACE(name);
    const auto rows = OpenNpyEdges(File(StrCat("edges-", name)));
    EXPECT_THAT(Integers(rows), ElementsAre(0, 5, 1, 6, 2, 7));
    EXPECT_THAT((*rows)->Where(1), HasSubstr(".npy: edge 1"));
  }
  EXPECT_THAT(Refusal(OpenNpyEdges(File("edges-bool"))),
              HasSubstr("edges-bool.npy: dtype bool, but integers"));
  EXPECT_THAT(Refusal(OpenNpyEdges(File("edges-float"))),
              HasSubstr("edges-float.npy: dtype float32, but integers"));
  EXPECT_THAT(Refusal(OpenNpyEdges(File("matrix-c_le_i8"))), IsEmpty());
  EXPECT_THAT(Refusal(OpenNpyEdges(File("cube"))), HasSubstr("integers"));
  EXPECT_THAT(Refusal(OpenNpyEdges(File("numbers-le_i8"))),
              HasSubstr("numbers-le_i8.npy: shape [3], but an edge list has "
                        "shape [2, E] (sources, destinations) or [E, 2]"));
}

TEST_F(NpyRowsTest, WarnsAboutAmbiguousEdges) {
  const testing::CapturedLog log;
  EXPECT_THAT(Integers(OpenNpyEdges(File("edges-columns"))),
              ElementsAre(0, 5, 1, 6, 2, 7));
  EXPECT_EQ(log.text(), "");
  EXPECT_THAT(Integers(OpenNpyEdges(File("edges-two"))),
              ElementsAre(0, 5, 1, 6));
  EXPECT_THAT(log.text(), AllOf(HasSubstr("shape [2, 2] is read as [2, E]"),
                                HasSubstr("save the transposed array file="),
                                HasSubstr("edges-two.npy")));
}

TEST_F(NpyRowsTest, ReadsIdsAndMasks) {
  EXPECT_THAT(Integers(OpenNpyIds(File("mask"), 4)), ElementsAre(1, 2));
  EXPECT_THAT(Integers(OpenNpyIds(File("numbers-be_u2"), 4)),
              ElementsAre(1, 0, 3));
  EXPECT_THAT(Refusal(OpenNpyIds(File("mask"), 5)),
              HasSubstr("mask.npy: a mask of 4 elements for 5 nodes"));
  EXPECT_THAT(Refusal(OpenNpyIds(File("mask-matrix"), -1)),
              HasSubstr("a bool array of shape [2, 2], but a mask has one"));
  EXPECT_THAT(Refusal(OpenNpyIds(File("pairs"), -1)),
              HasSubstr("shape [2, 2], but a list of ids has one dimension"));
  EXPECT_THAT(Integers(OpenNpyEdgeSeeds(File("pairs"), 9)),
              ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(Integers(OpenNpyEdgeSeeds(File("mask"), 4)), ElementsAre(1, 2));
  EXPECT_THAT(Integers(OpenNpyIds(File("mask"), -1)), ElementsAre(1, 2));
  EXPECT_THAT(Integers(OpenNpyEdgeSeeds(File("numbers-be_u2"), 9)),
              ElementsAre(1, 0, 3));
  EXPECT_THAT(Refusal(OpenNpyEdgeSeeds(File("mask"), 5)),
              HasSubstr("mask.npy: a mask of 4 elements for 5 edges"));
  EXPECT_THAT(Refusal(OpenNpyEdgeSeeds(File("matrix-c_le_i8"), 9)),
              HasSubstr("shape [2, 3], but edges are given by pairs of nodes "
                        "[n, 2] or by edge ids [n]"));
  EXPECT_THAT(Refusal(OpenNpyEdgeSeeds(File("edges-columns"), 9)),
              HasSubstr("shape [2, 3], but edges are given by pairs"));
  // Floats are refused at once, not only when they are read.
  for (const auto& opened :
       {OpenNpyEdgeSeeds(File("numbers-le_f4"), 9).status(),
        OpenNpyIds(File("numbers-le_f4"), 9).status()}) {
    EXPECT_THAT(std::string(opened.message()),
                HasSubstr("f4.npy: dtype float32, but integers are needed"));
  }
  EXPECT_THAT(
      std::string(ReadNpyIntegers(File("cube")).status().message()),
      HasSubstr("cube.npy holds float64 (2, 2, 2); it must be integers of one "
                "or two dimensions"));
  EXPECT_THAT(ReadNpyIntegers(File("pairs"))->As<int64_t>(),
              ElementsAre(3, 4, 5, 6));
  EXPECT_FALSE(ReadNpyIntegers(File("mask")).ok());
  EXPECT_FALSE(ReadNpyIntegers(File("numbers-le_f4")).ok());
}

TEST_F(NpyRowsTest, RefusesUnsupportedFiles) {
  EXPECT_THAT(Refusal(OpenNpyRows(File("complex"))),
              HasSubstr("complex.npy: numpy dtype '<c16' is not supported"));
  EXPECT_THAT(Refusal(OpenNpyRows(File("text"))), HasSubstr("'<U1'"));
  EXPECT_THAT(Refusal(OpenNpyRows(File("structure"))),
              HasSubstr("structured dtypes"));
  EXPECT_THAT(Refusal(OpenNpyRows(File("cube"))),
              HasSubstr("shape [2, 2, 2], but one or two dimensions"));
  EXPECT_THAT(Refusal(OpenNpyRows(File("large-u8"))),
              HasSubstr("row 1: 9223372036854775808 is above"));
  std::filesystem::resize_file(File("numbers-le_i2"), 130);
  EXPECT_THAT(Refusal(OpenNpyRows(File("numbers-le_i2"))),
              HasSubstr("the file has 130 bytes, but shape (3) of 2 bytes an "
                        "element needs 134"));
}

// The advice is a command; it was checked by hand.
TEST_F(NpyRowsTest, SaysHowToConvertOtherFiles) {
  const auto advice = [&](const char* name) {
    return Refusal(OpenNpyRows(directory_ / name));
  };
  const std::string folder = directory_.string();
  EXPECT_EQ(advice("text.csv"),
            StrCat(folder,
                   "/text.csv: not a .npy file, but text\nconvert it: python3 "
                   "-c \"import numpy; numpy.save('",
                   folder, "/text.npy', numpy.loadtxt('", folder,
                   "/text.csv', 'int64', delimiter=','))\""));
  EXPECT_THAT(advice("names.csv"),
              HasSubstr("/names.csv', 'int64', skiprows=1))"));
  EXPECT_THAT(advice("floats.txt"), HasSubstr("/floats.txt', 'float32'))"));
  EXPECT_THAT(advice("arrays.npz"), HasSubstr("/arrays.npz')['KEY'])"));
  EXPECT_THAT(advice("table.parquet"), HasSubstr("pandas.read_parquet('"));
  EXPECT_THAT(advice("tensor.pt"),
              HasSubstr("import numpy, torch; numpy.save('"));
  EXPECT_THAT(advice("noise.bin"),
              HasSubstr("noise.bin: not a .npy file: the magic is missing"));
  EXPECT_EQ(OpenNpyRows(directory_ / "none.npy").status().code(),
            absl::StatusCode::kNotFound);
}

// Memory of this process, including mapped pages of files in memory (tmpfs).
// For files on disks, the system maps as many pages as it likes and takes them
// back when it needs them.
int64_t ResidentBytes() {
  std::ifstream status("/proc/self/status");
  int64_t sum = 0;
  for (std::string word; status >> word;) {
    if (word != "RssAnon:" && word != "RssShmem:") continue;
    int64_t kib = 0;
    status >> kib;
    sum += kib << 10;
  }
  return sum;
}

TEST_F(NpyRowsTest, HoldsLittleOfAMatrixInFortranOrder) {
  ASSERT_EQ(testing::RunPython(MILLRACE_PYTHON, "table/make_npy.py",
                               {directory_.string(), "tall"}),
            0);
  const auto rows = OpenNpyRows(File("tall"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto reader = (*rows)->Open().value();
  constexpr int64_t kBlock = 4096;
  std::vector<float> values(kBlock * 16);
  const int64_t before = ResidentBytes();
  int64_t most = 0;
  float expected = 0;
  while (true) {
    const int64_t count = reader->ReadFloats(kBlock, values.data()).value();
    if (count == 0) break;
    for (int64_t i = 0; i < count * 16; ++i) ASSERT_EQ(values[i], expected++);
    most = std::max(most, ResidentBytes());
  }
  EXPECT_EQ(expected, 16 << 20);
  EXPECT_LT(most - before, 24 << 20);  // the file has 64 MiB
}

}  // namespace
}  // namespace millrace
