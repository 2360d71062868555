// SPDX-License-Identifier: Apache-2.0
#include "common/table/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
