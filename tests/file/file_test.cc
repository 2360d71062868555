// SPDX-License-Identifier: Apache-2.0
#include "common/file/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class FileTest : public testing::DirectoryTest {};

TEST_F(FileTest, ReadsWhatWasWritten) {
  const std::string content(100'000, 'x');
  ASSERT_TRUE(WriteNewFile(directory_ / "f", content).ok());
  EXPECT_EQ(ReadFile(directory_ / "f", 100'000).value(), content);
  EXPECT_EQ(ReadFile(directory_ / "f", 99'999).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(WriteNewFile(directory_ / "f", "").code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(FileTest, ReadsAPartWhateverThePosition) {
  ASSERT_TRUE(WriteNewFile(directory_ / "f", "0123456789").ok());
  uint64_t size = 0;
  const auto fd = OpenForReading(directory_ / "f", &size);
  ASSERT_TRUE(fd.ok()) << fd.status();
  const auto part = [&fd](size_t bytes, uint64_t offset) {
    std::string text(bytes, '\0');
    text.resize(
        ReadAt(fd->get(), "f", text.data(), text.size(), offset).value());
    return text;
  };
  EXPECT_EQ(part(3, 4), "456");
  EXPECT_EQ(part(3, 0), "012");
  // The file ends there.
  EXPECT_EQ(part(100, 8), "89");
  EXPECT_EQ(part(100, 10), "");
  char byte = 0;
  EXPECT_EQ(ReadAt(-1, "some/file", &byte, 1, 0).status().message(),
            "cannot read some/file: Bad file descriptor");
}

// The file is sparse, so it takes no room on the disk.
TEST_F(FileTest, RefusesAFileThatMemoryCannotHold) {
  const auto path = directory_ / "sparse";
  ASSERT_TRUE(WriteNewFile(path, "").ok());
  ASSERT_EQ(truncate(path.c_str(), off_t{1} << 42), 0) << errno;
  const absl::Status status = ReadFile(path, uint64_t{1} << 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("sparse needs 4.0 TiB of memory, but "),
                    HasSubstr("\ncheck that this is the file")));
}

TEST_F(FileTest, ReplacesAFileInOneStep) {
  const auto path = directory_ / "f", temporary = directory_ / "new";
  ASSERT_TRUE(WriteNewFile(path, "old").ok());
  const absl::Status replaced =
      ReplaceFile(path, temporary, [&](const std::filesystem::path& file) {
        EXPECT_EQ(file, temporary);
        EXPECT_EQ(*ReadFile(path, 100), "old");
        return WriteNewFile(file, "newer");
      });
  EXPECT_TRUE(replaced.ok()) << replaced;
  EXPECT_EQ(*ReadFile(path, 100), "newer");
  EXPECT_FALSE(FileExists(temporary));
}

TEST_F(FileTest, AFailedReplacementLeavesTheOldFile) {
  const auto path = directory_ / "f", temporary = directory_ / "new";
  ASSERT_TRUE(WriteNewFile(path, "old").ok());
  const absl::Status half = ReplaceFile(path, temporary, [](const auto& file) {
    EXPECT_TRUE(WriteNewFile(file, "ha").ok());
    return absl::ResourceExhaustedError("full");
  });
  EXPECT_EQ(half, absl::ResourceExhaustedError("full"));
  EXPECT_EQ(*ReadFile(path, 100), "old");
  EXPECT_FALSE(FileExists(temporary));
  const auto folder = directory_ / "folder";
  ASSERT_TRUE(std::filesystem::create_directory(folder));
  const absl::Status onto_folder =
      ReplaceFile(folder, temporary,
                  [](const auto& file) { return WriteNewFile(file, "new"); });
  EXPECT_EQ(onto_folder.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(onto_folder.message()),
              HasSubstr("cannot rename to " + folder.string()));
  EXPECT_FALSE(FileExists(temporary));
}

TEST_F(FileTest, RefusesWhatIsNotARegularFile) {
  uint64_t size = 0;
  EXPECT_EQ(OpenForReading(directory_ / "none", &size).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenForReading(directory_, &size).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(OpenForReading(directory_ / "pipe", &size).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FileTest, NamesAFullDevice) {
  const UniqueFd full(open("/dev/full", O_WRONLY));
  if (full.get() < 0) GTEST_SKIP() << "no /dev/full here";
  const absl::Status status = WriteAll(full.get(), "some/file", "x", 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("some/file"), HasSubstr("No space left")));
}

TEST_F(FileTest, MapsErrorNumbersToCodes) {
  EXPECT_EQ(FileError("open", "p", ENOENT).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FileError("open", "p", EACCES).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(FileError("write", "p", EFBIG).code(),
            absl::StatusCode::kResourceExhausted);
  const absl::Status folder = FileError("open", "p", EISDIR);
  EXPECT_EQ(folder.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(folder.message()),
              HasSubstr("\nthe path is a folder"));
  EXPECT_EQ(FileError("read", "p", ESTALE).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(FileError("map", "p", ENODEV).code(), absl::StatusCode::kInternal);
}

TEST_F(FileTest, EachErrorNumberHasItsCode) {
  using enum absl::StatusCode;
  const std::vector<std::pair<int, absl::StatusCode>> codes = {
      {ENOENT, kNotFound},
      {ENOTDIR, kNotFound},
      {EACCES, kPermissionDenied},
      {EPERM, kPermissionDenied},
      {EROFS, kPermissionDenied},
      {EEXIST, kAlreadyExists},
      {ENOTEMPTY, kAlreadyExists},
      {ENOSPC, kResourceExhausted},
      {EDQUOT, kResourceExhausted},
      {EFBIG, kResourceExhausted},
      {EMFILE, kResourceExhausted},
      {ENFILE, kResourceExhausted},
      {ENOMEM, kResourceExhausted},
      {EISDIR, kInvalidArgument},
      {ENAMETOOLONG, kInvalidArgument},
      {ELOOP, kInvalidArgument},
      {EIO, kDataLoss},
      {ESTALE, kUnavailable},
      {ETIMEDOUT, kUnavailable},
      {EINVAL, kInternal}};
  for (const auto& [number, code] : codes) {
    EXPECT_EQ(FileError("open", "a/b", number).code(), code) << number;
  }
  EXPECT_EQ(FileError("open", "a/b", ENOENT).message(),
            "cannot open a/b: No such file or directory");
  for (const int number : {ESTALE, ETIMEDOUT}) {
    EXPECT_THAT(std::string(FileError("read", "a/b", number).message()),
                HasSubstr("\nthe file system's server does not answer for this "
                          "file: check the mount and start again"));
  }
}

TEST_F(FileTest, NamesTheFileOfEveryError) {
  const std::string file = directory_ / "f", none = directory_ / "none";
  ASSERT_TRUE(WriteNewFile(file, "12345").ok());
  EXPECT_TRUE(FileExists(file));
  EXPECT_TRUE(FileExists(directory_));
  EXPECT_FALSE(FileExists(none));
  EXPECT_TRUE(IsDirectory(directory_));
  EXPECT_FALSE(IsDirectory(file));
  EXPECT_FALSE(IsDirectory(none));
  uint64_t size = 7;
  ASSERT_TRUE(OpenForReading(file, &size).ok());
  EXPECT_EQ(size, 5u);
  EXPECT_EQ(OpenForReading(none, &size).status().message(),
            "cannot open " + none + ": No such file or directory");
  EXPECT_EQ(OpenForReading(directory_, &size).status().message(),
            directory_.string() + " is not a regular file");
  EXPECT_EQ(ReadFile(file, 4).status().message(),
            file + " has 5 bytes; the limit is 4");
  EXPECT_EQ(*ReadFile(file, 5), "12345");
  EXPECT_EQ(WriteNewFile(file, "").message(),
            "cannot create " + file + ": File exists");
  EXPECT_EQ(WriteNewFile(none + "/f", "").message(),
            "cannot create " + none + "/f: No such file or directory");
  EXPECT_TRUE(SyncPath(file).ok());
  EXPECT_TRUE(SyncPath(directory_).ok());
  EXPECT_EQ(SyncPath(none).message(),
            "cannot open " + none + ": No such file or directory");
}

TEST_F(FileTest, SaysWhatToDoAboutADiskThatFails) {
  const absl::Status status = FileError("read", "some/file", EIO);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("some/file: Input/output error\n"),
                    HasSubstr("replace the disk")));
}

TEST_F(FileTest, HashIsXxh3OfTheContent) {
  std::string content(3'000'001, '\0');
  for (size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<char>(i * 31);
  }
  ASSERT_TRUE(WriteNewFile(directory_ / "f", content).ok());
  uint64_t size = 0;
  const auto fd = OpenForReading(directory_ / "f", &size);
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(size, content.size());
  EXPECT_EQ(HashFile(fd->get(), "f").value(),
            XXH3_64bits(content.data(), content.size()));
}

}  // namespace
}  // namespace millrace
