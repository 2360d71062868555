// SPDX-License-Identifier: Apache-2.0
#include "common/file/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <xxhash.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <random>

#include "common/base/strings.h"
#include "common/file/file.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file of format MAJOR.0 with this dictionary and no padding.
std::string File(std::string_view dictionary, int major = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(major);
  bytes += '\0';
  size_t size = dictionary.size();
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i, size >>= 8) {
    bytes += static_cast<char>(size & 0xff);
  }
  return bytes + std::string(dictionary);
}

constexpr char kPlain[] =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n";

TEST(ParseNpyHeader, ReadsWhatNumpyWrites) {
  for (const int major : {1, 2, 3}) {
    const auto header = ParseNpyHeader(File(kPlain, major));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->dtype, DType::kFloat32);
    EXPECT_FALSE(header->fortran_order);
    EXPECT_THAT(header->shape, ElementsAre(3, 4));
    EXPECT_EQ(header->data_offset, File(kPlain, major).size());
  }
}

TEST(ParseNpyHeader, ReadsAnyOrderAndSpacing) {
  const auto header = ParseNpyHeader(
      File("{ \"shape\":( 7L , ),'fortran_order':True ,'descr' : '|u1'}  "));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->dtype, DType::kUint8);
  EXPECT_TRUE(header->fortran_order);
  EXPECT_THAT(header->shape, ElementsAre(7));
  EXPECT_THAT(
      ParseNpyHeader(File("{'descr':'<i8','fortran_order':False,'shape':()}"))
          ->shape,
      ElementsAre());
}

TEST(ParseNpyHeader, RefusesHostileHeaders) {
  const std::vector<std::string> hostile = {
      "",
      "\x93NUMPY",
      File(kPlain).substr(0, 20),
      File(kPlain, 4),
      File(""),
      File("{}"),
      File("{'descr': '<f4'}"),
      File("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}"),
      File("{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}"),
      File("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
      File("{'descr': [('a', '<f4')], 'fortran_order': False, "
           "'shape': (1,)}"),
      File("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': 3}"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,}"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), "
           "'shape': (2,)}"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), "
           "'more': 'x'}"),
      File("{'descr': '<f4', 'fortran_order': False, "
           "'shape': (9223372036854775808,)}"),
      File("{'descr': '<f4', 'fortran_order': False, "
           "'shape': (4294967296, 4294967296)}"),
      File("{'descr': '<f8', 'fortran_order': False, "
           "'shape': (0, 4294967296, 4294967296)}"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (" +
           std::string(66, '1') + ",)}"),
      File("{'descr': '<f4"),
  };
  for (const std::string& bytes : hostile) {
    EXPECT_EQ(ParseNpyHeader(bytes).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bytes;
  }
  std::string deep = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 33; ++i) deep += "1,";
  EXPECT_FALSE(ParseNpyHeader(File(deep + ")}")).ok());
}

TEST(ParseNpyHeader, SaysWhatIsWrong) {
  const std::string start = "{'descr': '<f4', 'fortran_order': False, ";
  std::string dimensions = start + "'shape': (";
  for (int i = 0; i < 32; ++i) dimensions += "1,";
  EXPECT_TRUE(ParseNpyHeader(File(dimensions + ")}")).ok());
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"PK", "not a .npy file: the magic is missing"},
      {File(kPlain).substr(0, 9), "bad npy header: truncated"},
      {File(kPlain, 2).substr(0, 11), "bad npy header: truncated"},
      {File(kPlain).substr(0, 20),
       "bad npy header: truncated, it should have 60 bytes"},
      {File(kPlain, 4), "npy format 4.0 is unknown; 1.0, 2.0 and 3.0 are"},
      {File(kPlain, 0), "npy format 0.0 is unknown"},
      {File("x"), "bad npy header: expected '{' at 'x'"},
      {File("{}"), "'descr', 'fortran_order' or 'shape' is missing"},
      {File(start + "}"), "'descr', 'fortran_order' or 'shape' is missing"},
      {File("{'descr': '<f4', 'shape': (1,)}"),
       "'descr', 'fortran_order' or 'shape' is missing"},
      {File("{'fortran_order': False, 'shape': (1,)}"),
       "'descr', 'fortran_order' or 'shape' is missing"},
      {File(start + "'shape': (1,)} x"), "text after the dictionary"},
      {File(start + "'shape' (1,)}"), "expected ':' at '(1,)}'"},
      {File(start + "'shape': 3}"), "expected '(' at '3}'"},
      {File(start + "'shape': (1 2)}"), "expected ')' at '2)}'"},
      {File(start + "'shape': (-1,)}"), "a dimension is not a whole number"},
      {File(start + "'shape': (9223372036854775808,)}"),
       "a dimension exceeds 63 bits"},
      {File(dimensions + "1)}"), "over 32 dimensions"},
      {File(start + "'more': 1}"), "unexpected or repeated member 'more'"},
      {File(start + "'fortran_order': False}"),
       "unexpected or repeated member 'fortran_order'"},
      {File("{'descr': '<f4', 'fortran_order': 0}"),
       "'fortran_order' is neither True nor False"},
      {File("{'descr': [('a', '<f4')]}"),
       "expected a string; structured dtypes are not supported"},
      {File("{'descr"), "unterminated string"},
      {File(start + "'shape': (4294967296, 4294967296)}"),
       "bad npy header: shape (4294967296, 4294967296) is too large"},
      {File(start + "'shape': (4294967296, 4294967296, 1)}"),
       "bad npy header: shape (4294967296, 4294967296, 1) is too large"}};
  for (const auto& [bytes, what] : cases) {
    const absl::Status status = ParseNpyHeader(bytes).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(what)) << bytes;
  }
}

TEST(ParseNpyHeader, ByteOrderOfSingleBytesDoesNotMatter) {
  for (const char* descr : {"<u1", "|u1"}) {
    const auto header =
        ParseNpyHeader(File(std::string("{'descr': '") + descr +
                            "', 'fortran_order': False, 'shape': (1,)}"));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->dtype, DType::kUint8);
    EXPECT_EQ(header->descr, descr);
  }
}

TEST(ParseNpyHeader, SurvivesRandomDamage) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = File(kPlain, 1 + round % 3);
    for (unsigned i = 0; i < 1 + random() % 4; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    const auto header = ParseNpyHeader(bytes);
    if (header.ok()) {
      EXPECT_LE(header->data_offset, bytes.size());
      continue;
    }
    for (const char c : header.status().message()) {
      ASSERT_TRUE(c >= ' ' && c < 0x7f) << header.status();
    }
  }
}

TEST(FormatNpyHeader, IsAlignedAndReadable) {
  for (const auto& shape : std::vector<std::vector<int64_t>>{
           {0}, {5}, {1, 2}, {1000000, 128}, {0, 3}, {}}) {
    const std::string header = FormatNpyHeader(DType::kInt64, shape);
    EXPECT_EQ(header.size() % 64, 0u);
    EXPECT_EQ(header.back(), '\n');
    const auto parsed = ParseNpyHeader(header);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->shape, shape);
    EXPECT_EQ(parsed->data_offset, header.size());
  }
}

class NpyTest : public testing::DirectoryTest {
 protected:
  fs::path path() const { return directory_ / "array.npy"; }

  uint64_t HashOnDisk() const {
    const std::string bytes = ReadFile(path(), 1 << 30).value();
    return XXH3_64bits(bytes.data(), bytes.size());
  }
};
using NpyDeathTest = NpyTest;

TEST_F(NpyTest, RoundTripsAnArray) {
  std::vector<float> values(6);
  std::iota(values.begin(), values.end(), 0.5F);
  const Array flat = Array::Adopt(values);
  const Array array = Array::Borrow(DType::kFloat32, {3, 2}, flat.data(), {});
  const auto summary = WriteNpy(path(), array);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->rows, 3);
  EXPECT_EQ(summary->file_bytes, fs::file_size(path()));
  EXPECT_EQ(summary->xxh3, HashOnDisk());
  const auto mapped = MapNpy(path());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_THAT(mapped->shape(), ElementsAre(3, 2));
  EXPECT_THAT(mapped->As<float>(), ::testing::ElementsAreArray(values));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped->data()) % 64, 0u);
}

TEST_F(NpyTest, RoundTripsEmptyArrays) {
  for (const auto& shape :
       std::vector<std::vector<int64_t>>{{0}, {0, 5}, {5, 0}}) {
    fs::remove(path());
    ASSERT_TRUE(WriteNpy(path(), Array::Allocate(DType::kInt8, shape)).ok());
    const auto mapped = MapNpy(path());
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    EXPECT_EQ(mapped->shape(), shape);
    EXPECT_EQ(mapped->total_bytes(), 0u);
  }
}

TEST_F(NpyTest, StreamsUnknownRows) {
  auto writer = NpyWriter::Create(path(), DType::kInt32, {2}, -1);
  ASSERT_TRUE(writer.ok()) << writer.status();
  // Writes small and large pieces, around the size of the buffer.
  std::vector<int32_t> all;
  for (const size_t rows : {size_t{1}, size_t{100'000}, size_t{3},
                            size_t{200'000}, size_t{0}, size_t{131'072}}) {
    std::vector<int32_t> piece(rows * 2);
    std::iota(piece.begin(), piece.end(), static_cast<int32_t>(all.size()));
    all.insert(all.end(), piece.begin(), piece.end());
    ASSERT_TRUE((*writer)->Append(piece.data(), piece.size() * 4).ok());
  }
  const auto summary = (*writer)->Finish();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->rows, 431'076);
  EXPECT_EQ(summary->file_bytes, fs::file_size(path()));
  EXPECT_EQ(summary->xxh3, HashOnDisk());
  const auto mapped = MapNpy(path());
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_TRUE(std::ranges::equal(mapped->As<int32_t>(), all));
}

TEST_F(NpyTest, ChecksTheAnnouncedRowCount) {
  auto writer = NpyWriter::Create(path(), DType::kInt32, {2}, 3);
  ASSERT_TRUE(writer.ok());
  const std::vector<int32_t> row = {1, 2};
  EXPECT_EQ((*writer)->Append(row.data(), 4).code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ((*writer)->Append(row.data(), 4).message(),
            path().string() + ": 4 bytes are not whole rows of 8");
  ASSERT_TRUE((*writer)->Append(row.data(), 8).ok());
  const absl::Status finished = (*writer)->Finish().status();
  EXPECT_EQ(finished.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(finished.message(),
            path().string() + ": 1 rows were written, 3 promised");
}

TEST_F(NpyTest, ReadsBFloat16WhenTold) {
  Array array = Array::Allocate(DType::kBFloat16, {4});
  std::fill_n(array.mutable_data(), 8, std::byte{7});
  ASSERT_TRUE(WriteNpy(path(), array).ok());
  EXPECT_FALSE(MapNpy(path()).ok());
  const auto mapped = MapNpy(path(), DType::kBFloat16);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(mapped->dtype(), DType::kBFloat16);
}

TEST_F(NpyTest, RefusesSizesThatDisagree) {
  const Array array = Array::Adopt(std::vector<int64_t>{1, 2, 3});
  ASSERT_TRUE(WriteNpy(path(), array).ok());
  const uint64_t good = fs::file_size(path());
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{5}, uint64_t{127},
                               good - 1, good + 1, good * 2}) {
    fs::resize_file(path(), bytes);
    const absl::Status status = MapNpy(path()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("array.npy"));
    fs::remove(path());
    ASSERT_TRUE(WriteNpy(path(), array).ok());
  }
  EXPECT_TRUE(MapNpy(path()).ok());
  fs::resize_file(path(), good + 1);
  EXPECT_EQ(MapNpy(path()).status().message(),
            StrCat(path().string(), ": the file has ", good + 1,
                   " bytes, but shape (3) of 8 bytes an element needs ", good));
  fs::resize_file(path(), 0);
  EXPECT_EQ(MapNpy(path()).status().message(), path().string() + " is empty");
  EXPECT_EQ(MapNpy(directory_ / "none.npy").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(NpyTest, RefusesFortranOrderOfMatrices) {
  const std::string data(48, 'x');
  ASSERT_TRUE(WriteNewFile(path(), File("{'descr': '<f4', 'fortran_order': "
                                        "True, 'shape': (3, 4)}") +
                                       data)
                  .ok());
  EXPECT_EQ(MapNpy(path()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MapNpy(path()).status().message(),
            path().string() +
                ": Fortran order; save it with numpy.ascontiguousarray()");
  fs::remove(path());
  std::string header =
      "{'descr': '<f4', 'fortran_order': True, 'shape': (12,)}";
  header.resize(70, ' ');  // 80 with the bytes before it
  ASSERT_TRUE(WriteNewFile(path(), File(header) + data).ok());
  const auto vector = MapNpy(path());
  EXPECT_TRUE(vector.ok()) << vector.status();
}

// Elements are read in place, so they must be aligned.
TEST_F(NpyTest, RefusesMisalignedData) {
  for (const auto& [descr, bytes] :
       {std::pair("|u1", 1), {"<f2", 2}, {"<u4", 4}, {"<f8", 8}}) {
    for (size_t offset = 80; offset < 96; ++offset) {
      std::string header = std::string("{'descr': '") + descr +
                           "', 'fortran_order': False, 'shape': (1,)}";
      header.resize(offset - File("").size(), ' ');
      fs::remove(path());
      ASSERT_TRUE(
          WriteNewFile(path(), File(header) + std::string(bytes, '\1')).ok());
      const absl::Status status = MapNpy(path()).status();
      if (offset % bytes == 0) {
        EXPECT_TRUE(status.ok()) << status;
        continue;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("array.npy: the data begin at byte " +
                            std::to_string(offset)));
    }
  }
}

TEST_F(NpyTest, DropRowsKeepsTheValues) {
  std::vector<int64_t> values(100'000);
  std::iota(values.begin(), values.end(), 0);
  const Array heap = Array::Adopt(values);
  ASSERT_TRUE(WriteNpy(path(), heap).ok());
  const Array mapped = MapNpy(path()).value();
  for (const Array& array : {mapped, heap, Array::Adopt(std::vector<int>())}) {
    AdviseAccess(array, Access::kSequential);
    DropRows(array, 0, array.rows());
    AdviseAccess(array, Access::kDone);
  }
  EXPECT_TRUE(std::ranges::equal(mapped.As<int64_t>(), values));
  EXPECT_TRUE(std::ranges::equal(heap.As<int64_t>(), values));
}

// A limit on file sizes stands in for a full disk. The test runs in a child
// process, because the limit is permanent.
TEST_F(NpyDeathTest, ReportsAFullDisk) {
  const Array big = Array::Allocate(DType::kUint8, {3 << 20});
  EXPECT_EXIT(
      {
        std::signal(SIGXFSZ, SIG_IGN);
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 1 << 20;
        setrlimit(RLIMIT_FSIZE, &limit);
        const absl::Status status = WriteNpy(path(), big).status();
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
        std::exit(absl::IsResourceExhausted(status) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "cannot write .*array.npy");
}

// Files written by NumPy itself, in tests/data/npy (see make.py there).
TEST(MapNpy, ReadsNumpyFiles) {
  const fs::path data = fs::path(MILLRACE_TEST_DATA) / "npy";
  for (const char* name : {"v1.npy", "v2.npy", "v3.npy"}) {
    const auto array = MapNpy(data / name);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_THAT(array->shape(), ElementsAre(2, 3));
    EXPECT_THAT(array->As<double>(), ElementsAre(0, 0.5, 1, 1.5, 2, 2.5));
  }
  const std::vector<std::pair<const char*, DType>> dtypes = {
      {"uint8", DType::kUint8},     {"int8", DType::kInt8},
      {"int32", DType::kInt32},     {"uint32", DType::kUint32},
      {"int64", DType::kInt64},     {"uint64", DType::kUint64},
      {"float16", DType::kFloat16}, {"float32", DType::kFloat32},
      {"float64", DType::kFloat64}, {"empty", DType::kInt64},
      {"scalar", DType::kFloat64}};
  for (const auto& [name, dtype] : dtypes) {
    const auto array = MapNpy(data / StrCat(name, ".npy"));
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->dtype(), dtype);
  }
  EXPECT_EQ(MapNpy(data / "int32.npy")->IntegerAt(1), -2);
  EXPECT_EQ(MapNpy(data / "empty.npy")->rows(), 0);
  for (const char* name :
       {"big_endian", "fortran", "bool", "object", "structured", "complex"}) {
    EXPECT_EQ(MapNpy(data / StrCat(name, ".npy")).status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

}  // namespace
}  // namespace millrace
