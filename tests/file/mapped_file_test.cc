// SPDX-License-Identifier: Apache-2.0
#include "common/file/mapped_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/file/file.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::DirectoryTest {};
using MappedFileDeathTest = MappedFileTest;

// Reads the last byte in a way that the compiler cannot remove.
char LastByte(const MappedFile& file) {
  return *static_cast<const volatile char*>(&file.bytes().back());
}

TEST_F(MappedFileTest, ShowsTheContent) {
  ASSERT_TRUE(WriteNewFile(directory_ / "f", "abc").ok());
  const auto file = MappedFile::Open(directory_ / "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->bytes(), "abc");
}

TEST_F(MappedFileTest, RefusesEmptyAndMissingFiles) {
  ASSERT_TRUE(WriteNewFile(directory_ / "empty", "").ok());
  EXPECT_EQ(MappedFile::Open(directory_ / "empty").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open(directory_ / "none").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(MappedFileTest, KnowsWhatIsMapped) {
  ASSERT_TRUE(WriteNewFile(directory_ / "f", std::string(100, 'x')).ok());
  // More mappings than one block of the registry holds; some are freed
  // meanwhile.
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (int i = 0; i < 1500; ++i) {
    files.push_back(MappedFile::Open(directory_ / "f").value());
    if (i % 3 == 0) files.erase(files.begin());
  }
  for (const auto& file : files) {
    EXPECT_TRUE(IsMapped(file->bytes().data(), 100));
    EXPECT_FALSE(IsMapped(file->bytes().data(), 101));
  }
  const void* last = files.back()->bytes().data();
  files.clear();
  EXPECT_FALSE(IsMapped(last, 1));
  EXPECT_FALSE(IsMapped(&files, 1));
}

TEST_F(MappedFileDeathTest, NamesATruncatedFile) {
  const fs::path path = directory_ / "data.npy";
  ASSERT_TRUE(WriteNewFile(path, std::string(100'000, 'x')).ok());
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EXIT(
      {
        InstallTruncationHandler();
        fs::resize_file(path, 10);
        std::exit(LastByte(**file));
      },
      ::testing::ExitedWithCode(1), "data.npy was truncated");
}

// A file that lost its last byte: the page still exists, and the byte is zero.
TEST_F(MappedFileDeathTest, WatchNamesAFileThatLosesPartOfAPage) {
  const fs::path path = directory_ / "data.npy";
  ASSERT_TRUE(WriteNewFile(path, std::string(100'000, 'x')).ok());
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EXIT(
      {
        const TruncationWatch watch(absl::Milliseconds(1));
        fs::resize_file(path, 99'999);
        Notification never;
        never.WaitForNotificationWithTimeout(absl::Seconds(30));
        std::exit(LastByte(**file));
      },
      ::testing::ExitedWithCode(1), "data.npy was truncated");
}

TEST_F(MappedFileTest, WatchIgnoresHarmlessChanges) {
  const TruncationWatch watch(absl::Milliseconds(1));
  for (const char* name : {"grows", "replaced", "gone", "closed"}) {
    ASSERT_TRUE(WriteNewFile(directory_ / name, "content").ok());
  }
  const auto grows = MappedFile::Open(directory_ / "grows");
  const auto replaced = MappedFile::Open(directory_ / "replaced");
  const auto gone = MappedFile::Open(directory_ / "gone");
  auto closed = MappedFile::Open(directory_ / "closed");
  fs::resize_file(directory_ / "grows", 100);
  ASSERT_TRUE(WriteNewFile(directory_ / "new", "short").ok());
  fs::rename(directory_ / "new", directory_ / "replaced");
  fs::remove(directory_ / "gone");
  closed->reset();
  fs::resize_file(directory_ / "closed", 1);
  Notification never;
  never.WaitForNotificationWithTimeout(absl::Milliseconds(50));
  EXPECT_EQ((*replaced)->bytes(), "content");
}

}  // namespace
}  // namespace millrace
