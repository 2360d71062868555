// SPDX-License-Identifier: Apache-2.0
#include "common/file/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/host_memory.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

constexpr size_t kReadBytes = size_t{128} << 10;
// The kernel's limit for one write, rounded down.
constexpr size_t kWriteBytes = size_t{1} << 30;

absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case EISDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return absl::StatusCode::kInvalidArgument;
    case EIO:
      return absl::StatusCode::kDataLoss;
    case ESTALE:
    case ETIMEDOUT:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

// Advice for errors where the general advice for their status code misleads.
const char* AdviceFor(int error_number) {
  switch (error_number) {
    case EISDIR:
      return "\nthe path is a folder: name a file";
    case EIO:
      return "\nthe disk has failed: see the system log (dmesg), repair or "
             "replace the disk, and restore the file";
    case ESTALE:
    case ETIMEDOUT:
      return "\nthe file system's server does not answer for this file: check "
             "the mount and start again";
    default:
      return "";
  }
}

}  // namespace

absl::Status FileError(std::string_view action,
                       const std::filesystem::path& path, int error_number) {
  return absl::Status(
      CodeOf(error_number),
      absl::StrCat("cannot ", std::string(action), " ", path.native(), ": ",
                   std::strerror(error_number), AdviceFor(error_number)));
}

bool FileExists(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool IsDirectory(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

absl::StatusOr<UniqueFd> OpenForReading(const std::filesystem::path& path,
                                        uint64_t* size) {
  // Non-blocking, since opening a named pipe would wait for a writer before we
  // can refuse the pipe.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return FileError("open", path, errno);
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return FileError("stat", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.native(), " is not a regular file"));
  }
  *size = static_cast<uint64_t>(info.st_size);
  return fd;
}

absl::StatusOr<UniqueFd> CreateNewFile(const std::filesystem::path& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return FileError("create", path, errno);
  return fd;
}

absl::Status WriteAll(int fd, const std::filesystem::path& path,
                      const void* data, size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(fd, from, std::min(bytes, kWriteBytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError("write", path, errno);
    }
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ReadAt(int fd, const std::filesystem::path& path,
                              void* data, size_t bytes, uint64_t offset) {
  auto* into = static_cast<char*>(data);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        pread(fd, into + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path, errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     uint64_t limit) {
  uint64_t size = 0;
  MILLRACE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForReading(path, &size));
  if (size > limit) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path.native(), " has ", size, " bytes; the limit is ", limit));
  }
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(absl::StrCat("reading ", path.native()), size,
                  "check that this is the file that you meant"));
  std::string content(size, '\0');
  MILLRACE_ASSIGN_OR_RETURN(
      const size_t got,
      ReadAt(fd.get(), path, content.data(), content.size(), 0));
  content.resize(got);
  return content;
}

absl::Status WriteNewFile(const std::filesystem::path& path,
                          std::string_view content) {
  MILLRACE_ASSIGN_OR_RETURN(const UniqueFd fd, CreateNewFile(path));
  MILLRACE_RETURN_IF_ERROR(
      WriteAll(fd.get(), path, content.data(), content.size()));
  if (fsync(fd.get()) != 0) return FileError("write", path, errno);
  return absl::OkStatus();
}

absl::Status ReplaceFile(
    const std::filesystem::path& path, const std::filesystem::path& temporary,
    const std::function<absl::Status(const std::filesystem::path&)>& write) {
  absl::Status written = write(temporary);
  std::error_code error;
  if (written.ok()) {
    std::filesystem::rename(temporary, path, error);
    if (error) written = FileError("rename to", path, error.value());
  }
  if (!written.ok()) std::filesystem::remove(temporary, error);
  return written;
}

absl::Status SyncPath(const std::filesystem::path& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FileError("open", path, errno);
  if (fsync(fd.get()) != 0) return FileError("sync", path, errno);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> HashFile(int fd, const std::filesystem::path& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
  uint64_t offset = 0;
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(
        const size_t got, ReadAt(fd, path, buffer.get(), kReadBytes, offset));
    if (got == 0) return XXH3_64bits_digest(state.get());
    XXH3_64bits_update(state.get(), buffer.get(), got);
    offset += got;
  }
}

}  // namespace millrace
