// SPDX-License-Identifier: Apache-2.0
#include "common/file/uncached_reader.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

// The strictest alignment that O_DIRECT may require of addresses and offsets.
constexpr size_t kBufferAlignment = 4096;
// Number of bytes that are read, and dropped from the cache, at a time.
constexpr size_t kCachedPiece = size_t{64} << 10;

bool SetDirect(int fd, bool direct) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 &&
         fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

}  // namespace

UncachedReader::UncachedReader(std::filesystem::path file, UniqueFd fd,
                               uint64_t file_bytes)
    : file_(std::move(file)),
      fd_(std::move(fd)),
      file_bytes_(file_bytes),
      direct_(SetDirect(fd_.get(), true)),
      buffer_(static_cast<std::byte*>(
          std::aligned_alloc(kBufferAlignment, kChunkBytes))) {
  MILLRACE_CHECK(buffer_ != nullptr);
}

absl::StatusOr<UncachedReader> UncachedReader::Open(
    const std::filesystem::path& file) {
  uint64_t bytes = 0;
  MILLRACE_ASSIGN_OR_RETURN(UniqueFd fd, OpenForReading(file, &bytes));
  // When reading through the cache, do not read ahead.
  (void)posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  return UncachedReader(file, std::move(fd), bytes);
}

absl::StatusOr<std::span<const std::byte>> UncachedReader::Next() {
  if (offset_ >= file_bytes_) return std::span<const std::byte>();
  MILLRACE_ASSIGN_OR_RETURN(const size_t got,
                            direct_ ? ReadDirect() : ReadThroughCache());
  offset_ += got;
  return std::span<const std::byte>(buffer_.get(), got);
}

absl::StatusOr<size_t> UncachedReader::ReadDirect() {
  while (true) {
    const ssize_t got = pread(fd_.get(), buffer_.get(), kChunkBytes,
                              static_cast<off_t>(offset_));
    if (got >= 0) return static_cast<size_t>(got);
    if (errno == EINTR) continue;
    if (errno != EINVAL) return FileError("read", file_, errno);
    // Some file systems allow opening with O_DIRECT but not reading.
    if (!SetDirect(fd_.get(), false)) return FileError("read", file_, errno);
    direct_ = false;
    return ReadThroughCache();
  }
}

absl::StatusOr<size_t> UncachedReader::ReadThroughCache() {
  const size_t wanted = std::min<uint64_t>(kChunkBytes, file_bytes_ - offset_);
  size_t done = 0;
  while (done < wanted) {
    const size_t piece = std::min(kCachedPiece, wanted - done);
    const auto at = static_cast<off_t>(offset_ + done);
    iovec into = {buffer_.get() + done, piece};
    // Reads only what is cached, or fails if the file system cannot do that.
    const ssize_t cached = preadv2(fd_.get(), &into, 1, at, RWF_NOWAIT);
    if (cached == static_cast<ssize_t>(piece)) {
      done += piece;
      continue;
    }
    const ssize_t got = pread(fd_.get(), into.iov_base, piece, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", file_, errno);
    (void)posix_fadvise(fd_.get(), at, static_cast<off_t>(piece),
                        POSIX_FADV_DONTNEED);
    done += static_cast<size_t>(got);
    if (got == 0) break;  // the file was truncated
  }
  return done;
}

}  // namespace millrace
