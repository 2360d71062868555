// SPDX-License-Identifier: Apache-2.0
// File access by system calls, with errors that name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace millrace {

// "cannot ACTION PATH: strerror", with advice where it helps. The code follows
// from the error number: NOT_FOUND, PERMISSION_DENIED, ALREADY_EXISTS,
// RESOURCE_EXHAUSTED (disk full, file too large, no more descriptors or maps),
// INVALID_ARGUMENT (a folder, a name too long), DATA_LOSS (the disk has
// failed), UNAVAILABLE (a network file system does not answer), otherwise
// INTERNAL.
absl::Status FileError(std::string_view action,
                       const std::filesystem::path& path, int error_number);

// Whether there is a file or a directory of any kind at `path`; false also if
// that cannot be found out.
bool FileExists(const std::filesystem::path& path);
// Whether `path` is a directory; false also if that cannot be found out.
bool IsDirectory(const std::filesystem::path& path);

// Opens an existing regular file for reading. NOT_FOUND: no such file.
// INVALID_ARGUMENT: not a regular file. `size` receives its length.
absl::StatusOr<UniqueFd> OpenForReading(const std::filesystem::path& path,
                                        uint64_t* size);
// Creates a file, open for reading and writing. ALREADY_EXISTS: it exists.
absl::StatusOr<UniqueFd> CreateNewFile(const std::filesystem::path& path);

// Writes all bytes at the descriptor's position; `path` is used in error
// messages only.
absl::Status WriteAll(int fd, const std::filesystem::path& path,
                      const void* data, size_t bytes);

// Reads up to `bytes` bytes at `offset`, whatever the descriptor's position.
// Returns how many it read, which are fewer only if the file ends there. `path`
// is used in error messages only.
absl::StatusOr<size_t> ReadAt(int fd, const std::filesystem::path& path,
                              void* data, size_t bytes, uint64_t offset);

// The content of a file. RESOURCE_EXHAUSTED: it has more than `limit` bytes, or
// more than fit in the available memory.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     uint64_t limit);
// Creates a file with this content and fsyncs it. ALREADY_EXISTS: it exists.
absl::Status WriteNewFile(const std::filesystem::path& path,
                          std::string_view content);
// Puts a new file in the place of `path` in one step, so that a reader never
// sees half a file: calls `write` with `temporary`, a path in the same folder,
// and renames what it wrote there. Removes it if anything fails.
absl::Status ReplaceFile(
    const std::filesystem::path& path, const std::filesystem::path& temporary,
    const std::function<absl::Status(const std::filesystem::path&)>& write);
// fsyncs a file or a directory.
absl::Status SyncPath(const std::filesystem::path& path);

// XXH3-64 of the whole file, whatever the position of `fd`. CANCELLED: the
// program was interrupted.
absl::StatusOr<uint64_t> HashFile(int fd, const std::filesystem::path& path);

}  // namespace millrace
