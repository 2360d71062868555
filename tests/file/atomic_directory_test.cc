// SPDX-License-Identifier: Apache-2.0
#include "common/file/atomic_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_directory.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// The paths that this thread has synced, in order, while it has a list.
thread_local std::vector<fs::path>* synced = nullptr;

}  // namespace
}  // namespace millrace

// Replaces the C library's fsync(): does the same, and notes the path.
extern "C" int fsync(int fd) {
  if (millrace::synced != nullptr) {
    millrace::synced->push_back(
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)));
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace millrace {
namespace {

class AtomicDirectoryTest : public testing::DirectoryTest {
 protected:
  static void Fill(const AtomicDirectory& directory) {
    fs::create_directories(directory.path() / "a/b");
    std::ofstream(directory.path() / "a/b/file") << "content";
  }
  size_t Entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), {}));
  }
};

TEST_F(AtomicDirectoryTest, AppearsCompleteAtCommit) {
  const fs::path target = directory_ / "store";
  auto directory = AtomicDirectory::Create(target);
  ASSERT_TRUE(directory.ok()) << directory.status();
  Fill(*directory);
  EXPECT_FALSE(fs::exists(target));
  ASSERT_TRUE(directory->Commit().ok());
  EXPECT_TRUE(fs::exists(target / "a/b/file"));
  EXPECT_EQ(Entries(), 1u);
}

// Otherwise a power cut may leave a directory that has its final name but lacks
// files.
TEST_F(AtomicDirectoryTest, SyncsAllFoldersBeforeItAppearsAndItsParentAfter) {
  auto directory = AtomicDirectory::Create(directory_ / "store");
  ASSERT_TRUE(directory.ok()) << directory.status();
  Fill(*directory);
  const fs::path before = directory->path();
  std::vector<fs::path> paths;
  synced = &paths;
  const absl::Status status = directory->Commit();
  synced = nullptr;
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(paths.size(), 4u);
  EXPECT_EQ(paths.back(), directory_);
  paths.pop_back();
  // The folders were synced under the names that they had before Commit().
  EXPECT_THAT(paths,
              UnorderedElementsAre(before, before / "a", before / "a/b"));
}

TEST_F(AtomicDirectoryTest, LeavesNothingWithoutCommit) {
  {
    auto directory = AtomicDirectory::Create(directory_ / "store");
    ASSERT_TRUE(directory.ok());
    Fill(*directory);
    const AtomicDirectory moved = *std::move(directory);
    EXPECT_TRUE(fs::exists(moved.path() / "a/b/file"));
  }
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(AtomicDirectoryTest, CreatesMissingParents) {
  const fs::path target = directory_ / "x/y/store/";
  auto directory = AtomicDirectory::Create(target);
  ASSERT_TRUE(directory.ok()) << directory.status();
  ASSERT_TRUE(directory->Commit().ok());
  EXPECT_TRUE(fs::is_directory(directory_ / "x/y/store"));
}

TEST_F(AtomicDirectoryTest, NeverOverwrites) {
  fs::create_directory(directory_ / "taken");
  EXPECT_EQ(AtomicDirectory::Create(directory_ / "taken").status().code(),
            absl::StatusCode::kAlreadyExists);
  fs::create_symlink("nowhere", directory_ / "dangling");
  EXPECT_EQ(AtomicDirectory::Create(directory_ / "dangling").status().code(),
            absl::StatusCode::kAlreadyExists);
  for (const char* odd : {"", ".", "..", "/"}) {
    EXPECT_EQ(AtomicDirectory::Create(odd).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(AtomicDirectoryTest, ReportsInAdvanceWhatItWouldRefuse) {
  fs::create_directory(directory_ / "taken");
  EXPECT_EQ(AtomicDirectory::CheckTarget(directory_ / "taken/").code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(AtomicDirectory::CheckTarget("..").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(AtomicDirectory::CheckTarget(directory_ / "new/store").ok());
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(AtomicDirectoryTest, TheFirstOfTwoWritersWins) {
  auto first = AtomicDirectory::Create(directory_ / "store");
  ASSERT_TRUE(first.ok());
  {
    auto second = AtomicDirectory::Create(directory_ / "store");
    ASSERT_TRUE(second.ok());
    Fill(*first);
    ASSERT_TRUE(first->Commit().ok());
    const absl::Status lost = second->Commit();
    EXPECT_TRUE(absl::IsAlreadyExists(lost)) << lost;
    EXPECT_THAT(std::string(lost.message()),
                HasSubstr("store exists; remove it or choose another place"));
  }
  EXPECT_TRUE(fs::exists(directory_ / "store/a/b/file"));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(AtomicDirectoryTest, SaysWhyItCannotStart) {
  std::ofstream(directory_ / "file") << "no directory";
  const absl::Status status =
      AtomicDirectory::Create(directory_ / "file/store").status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("file"), absl::string_view::npos);
}

}  // namespace
}  // namespace millrace
