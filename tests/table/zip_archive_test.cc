// SPDX-License-Identifier: Apache-2.0
#include "common/table/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/stored_zip.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::StoredZip;

const std::vector<testing::ZipEntry>& Entries() {
  static const std::vector<testing::ZipEntry> entries = {
      {"a.npy", "first"}, {"empty", ""}, {"folder/b.npy", "the second one"}};
  return entries;
}

// Expects the archive to hold exactly Entries().
void ExpectEntries(const std::string& bytes) {
  const auto archive = ZipArchive::Of("x.npz", bytes);
  ASSERT_TRUE(archive.ok()) << archive.status();
  ASSERT_EQ((*archive)->entries().size(), Entries().size());
  for (const auto& [name, content] : Entries()) {
    const ZipArchive::Entry* entry = (*archive)->Find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->data, content);
    EXPECT_EQ(entry->bytes, content.size());
  }
  EXPECT_EQ((*archive)->Find("b.npy"), nullptr);
  const absl::Status checked = CheckEntries(*archive);
  EXPECT_TRUE(checked.ok()) << checked;
}

TEST(ZipArchiveTest, FindsEntriesWhateverTheWidthOfTheirFields) {
  for (const bool wide : {false, true}) {
    ExpectEntries(StoredZip(Entries(), wide));
  }
}

TEST(ZipArchiveTest, TakesTheLongestComment) {
  for (const bool wide : {false, true}) {
    ExpectEntries(StoredZip(Entries(), wide, std::string(65535, 'c')));
  }
  const auto longer = ZipArchive::Of(
      "x.npz", StoredZip(Entries(), false, std::string(65536, 'c')));
  EXPECT_FALSE(longer.ok());
}

TEST(ZipArchiveTest, RefusesFilesThatAreCutOff) {
  for (const bool wide : {false, true}) {
    const std::string whole = StoredZip(Entries(), wide);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      EXPECT_FALSE(ZipArchive::Of("x.npz", cut).ok()) << size;
    }
  }
}

// Changes a number in the directory's entry of a.npy.
TEST(ZipArchiveTest, RefusesEntriesThatCannotBeRead) {
  struct Case {
    size_t at;  // bytes after the start of the entry
    std::string bytes;
    const char* what;  // null: the archive is opened
  };
  const std::string good = StoredZip(Entries());
  const size_t entry = good.find("PK\1\2");
  ASSERT_NE(entry, std::string::npos);
  const auto number = [](uint64_t value) {
    return testing::LittleEndian(value, 4);
  };
  for (const Case& c :
       {Case{8,
             {1, 0},
             "x.npz: entry a.npy is encrypted; only stored and deflated "
             "entries are supported\nsave the file again without it"},
        Case{10,
             {12, 0},
             "x.npz: entry a.npy is compressed with method 12; only stored "
             "and deflated entries are supported\nsave the file again without "
             "it"},
        Case{0, {'Q'}, "its directory has no entry where one should be"},
        Case{28,
             {static_cast<char>(0xff), static_cast<char>(0xff)},
             "x.npz: damaged zip file: its directory is cut off"},
        Case{24, number(6), "x.npz: damaged zip file: a.npy has two sizes"},
        Case{42, number(1), "damaged zip file: no entry a.npy at 1"},
        Case{42, number(100000),
             "a.npy of 30 bytes at 100000 exceeds the file of "},
        Case{20, number(100000), "a.npy of 100000 bytes at 35 exceeds the "},
        Case{38, {0x10}, "a.npy is a folder that has content"},
        Case{38, {0x20}, nullptr}}) {
    std::string bytes = good;
    bytes.replace(entry + c.at, c.bytes.size(), c.bytes);
    const auto archive = ZipArchive::Of("x.npz", bytes);
    if (c.what == nullptr) {
      EXPECT_TRUE(archive.ok()) << archive.status();
    } else {
      EXPECT_THAT(std::string(archive.status().message()), HasSubstr(c.what));
    }
  }
}

// One byte of deflated data stands for at most 1032 bytes.
TEST(ZipArchiveTest, RefusesSizesThatCannotBeInflated) {
  for (const uint64_t size : {5 * 1032 + 1031, 6 * 1032}) {
    std::string bytes = StoredZip(Entries());
    const size_t entry = bytes.find("PK\1\2");
    bytes[entry + 10] = 8;  // deflated
    bytes.replace(entry + 24, 4, testing::LittleEndian(size, 4));
    const auto archive = ZipArchive::Of("x.npz", bytes);
    EXPECT_EQ(archive.ok(), size < 6 * 1032) << archive.status();
    if (archive.ok()) {
      EXPECT_THAT(std::string(CheckEntries(*archive).message()),
                  HasSubstr("entry a.npy: its compressed data are damaged"));
      continue;
    }
    EXPECT_THAT(std::string(archive.status().message()),
                HasSubstr("a.npy has 5 compressed bytes, which cannot become "
                          "6192"));
  }
}

// The bytes that are missing from the entry follow it in the file.
TEST(ZipArchiveTest, RefusesDeflatedEntriesThatEndTooEarly) {
  std::string plain;
  for (int i = 0; i < 1000; ++i) plain += std::to_string(i * i);
  std::string deflated(plain.size(), '\0');
  z_stream stream = {};
  ASSERT_EQ(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, /*windowBits=*/-15,
                         /*memLevel=*/8, Z_DEFAULT_STRATEGY),
            Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(deflated.data());
  stream.avail_out = static_cast<uInt>(deflated.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  deflated.resize(stream.total_out);
  deflateEnd(&stream);
  const auto crc =
      crc32_z(0, reinterpret_cast<const Bytef*>(plain.data()), plain.size());

  for (const uint64_t missing : {0, 40}) {
    std::string bytes = StoredZip({{"a.npy", deflated}});
    const size_t entry = bytes.find("PK\1\2");
    bytes[entry + 10] = 8;  // deflated
    bytes.replace(entry + 16, 12,
                  testing::LittleEndian(crc, 4) +
                      testing::LittleEndian(deflated.size() - missing, 4) +
                      testing::LittleEndian(plain.size(), 4));
    const auto archive = ZipArchive::Of("x.npz", bytes);
    ASSERT_TRUE(archive.ok()) << archive.status();
    const absl::Status checked = CheckEntries(*archive);
    if (missing == 0) {
      EXPECT_TRUE(checked.ok()) << checked;
    } else {
      EXPECT_THAT(std::string(checked.message()),
                  HasSubstr("a.npy: its compressed data are damaged"));
    }
  }
}

TEST(ZipArchiveTest, SaysWhetherAFileIsCutOrOfAnotherKind) {
  const absl::Status cut =
      ZipArchive::Of("x.npz", StoredZip(Entries()).substr(0, 60)).status();
  EXPECT_TRUE(absl::IsDataLoss(cut));
  EXPECT_THAT(std::string(cut.message()),
              HasSubstr("it is cut off: its directory is missing"));
  for (const char* other : {"", "text that is longer than an end record"}) {
    const absl::Status refused = ZipArchive::Of("x.npz", other).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused));
    EXPECT_EQ(refused.message(), "x.npz: not a zip file");
  }
}

TEST(ZipArchiveTest, ReadsPartsAndNoMoreThanThereIs) {
  const std::string bytes = StoredZip(Entries());
  const auto archive = ZipArchive::Of("x.npz", bytes).value();
  const auto reader = ZipEntryReader::Create(archive, *archive->Find("a.npy"));
  char letters[5] = {};
  ASSERT_TRUE(reader->Skip(2).ok());
  ASSERT_TRUE(reader->Read(letters, 2).ok());
  EXPECT_EQ(std::string(letters, 2), "rs");
  EXPECT_THAT(std::string(reader->Read(letters, 2).message()),
              HasSubstr("x.npz: entry a.npy: it has 5 bytes, but 2 more are "
                        "needed after 4"));
  EXPECT_TRUE(reader->Read(letters, 1).ok());
  EXPECT_EQ(letters[0], 't');
  EXPECT_FALSE(reader->Skip(1).ok());
}

TEST(ZipArchiveTest, VerifiesChecksums) {
  std::string bytes = StoredZip(Entries());
  bytes[bytes.find("second")] = 'S';
  const auto archive = ZipArchive::Of("x.npz", bytes);
  ASSERT_TRUE(archive.ok()) << archive.status();
  const absl::Status checked = CheckEntries(*archive);
  EXPECT_TRUE(absl::IsDataLoss(checked)) << checked;
  EXPECT_THAT(std::string(checked.message()),
              HasSubstr("entry folder/b.npy: its checksum does not match"));
}

}  // namespace
}  // namespace millrace
