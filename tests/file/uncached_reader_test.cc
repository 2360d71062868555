// SPDX-License-Identifier: Apache-2.0
#include "common/file/uncached_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "common/file/file.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPage = 4096;

class UncachedReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The current directory is more likely to be on a disk than the temporary
    // one.
    file_ = fs::current_path() / ("uncached-" + std::to_string(getpid()));
    fs::remove(file_);
  }
  void TearDown() override { fs::remove(file_); }

  std::string Write(size_t bytes) const {
    std::string content(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) {
      content[i] = static_cast<char>(i * 7 + i / 251);
    }
    EXPECT_TRUE(WriteNewFile(file_, content).ok());
    return content;
  }

  std::string ReadAll() const {
    auto reader = UncachedReader::Open(file_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::string content;
    while (true) {
      const auto piece = reader->Next();
      EXPECT_TRUE(piece.ok()) << piece.status();
      if (!piece.ok() || piece->empty()) return content;
      content.append(reinterpret_cast<const char*>(piece->data()),
                     piece->size());
    }
  }

  // Which pages of the file are in the page cache.
  std::vector<bool> Cached() const {
    uint64_t bytes = 0;
    const auto fd = OpenForReading(file_, &bytes);
    EXPECT_TRUE(fd.ok());
    void* map =
        mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd->get(), /*offset=*/0);
    EXPECT_NE(map, MAP_FAILED);
    std::vector<unsigned char> pages((bytes + kPage - 1) / kPage);
    EXPECT_EQ(mincore(map, bytes, pages.data()), 0);
    munmap(map, bytes);
    std::vector<bool> cached;
    for (const unsigned char page : pages) cached.push_back(page & 1);
    return cached;
  }

  fs::path file_;
};

TEST_F(UncachedReaderTest, ReadsTheContent) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, kPage, UncachedReader::kChunkBytes,
        2 * UncachedReader::kChunkBytes + 1234}) {
    const std::string content = Write(bytes);
    EXPECT_EQ(ReadAll(), content) << bytes;
    fs::remove(file_);
  }
}

TEST_F(UncachedReaderTest, ReadsWhereTheFileSystemHasNoDirectReads) {
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no memory file system";
  file_ = fs::path("/dev/shm") / file_.filename();
  const std::string content = Write(UncachedReader::kChunkBytes + 77);
  EXPECT_EQ(ReadAll(), content);
}

TEST_F(UncachedReaderTest, SeesChangesInThePageCache) {
  const std::string content = Write(3 * kPage);
  const UniqueFd fd(open(file_.c_str(), O_WRONLY));
  ASSERT_EQ(pwrite(fd.get(), "x", 1, 2 * kPage), 1);
  std::string changed = content;
  changed[2 * kPage] = 'x';
  EXPECT_EQ(ReadAll(), changed);
}

TEST_F(UncachedReaderTest, LeavesThePageCacheAlone) {
  Write(3 * UncachedReader::kChunkBytes);
  const UniqueFd fd(open(file_.c_str(), O_RDONLY));
  ASSERT_EQ(posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM), 0);
  ASSERT_EQ(posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  char byte = 0;
  ASSERT_EQ(pread(fd.get(), &byte, 1, 5 * kPage), 1);
  ASSERT_EQ(pread(fd.get(), &byte, 1, UncachedReader::kChunkBytes), 1);
  const std::vector<bool> before = Cached();
  if (std::find(before.begin(), before.end(), false) == before.end()) {
    GTEST_SKIP() << "the file system keeps all pages, or does not report them";
  }
  ReadAll();
  EXPECT_EQ(Cached(), before);
}

TEST_F(UncachedReaderTest, NamesAFileThatIsMissing) {
  const absl::Status status = UncachedReader::Open(file_).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace millrace
