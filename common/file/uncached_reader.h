// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/file/file.h"

namespace millrace {

// Reads a file once, from start to end, without disturbing the page cache: it
// bypasses the cache (O_DIRECT) or, if the file system does not support that,
// reads through it and then drops the pages that were not cached before.
// Not thread-safe.
class UncachedReader {
 public:
  static constexpr size_t kChunkBytes = size_t{256} << 10;

  // Fails as OpenForReading() does.
  static absl::StatusOr<UncachedReader> Open(const std::filesystem::path& file);

  // The length of the file when it was opened.
  uint64_t file_bytes() const { return file_bytes_; }

  // The next bytes, at most kChunkBytes; empty at the end, which comes early if
  // the file was truncated. Valid until the next call. Fails with FileError().
  absl::StatusOr<std::span<const std::byte>> Next();

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  UncachedReader(std::filesystem::path file, UniqueFd fd, uint64_t file_bytes);
  absl::StatusOr<size_t> ReadDirect();
  absl::StatusOr<size_t> ReadThroughCache();

  std::filesystem::path file_;
  UniqueFd fd_;
  uint64_t file_bytes_;
  uint64_t offset_ = 0;
  bool direct_;
  std::unique_ptr<std::byte, Free>
      buffer_;  // kChunkBytes, aligned for O_DIRECT
};

}  // namespace millrace
