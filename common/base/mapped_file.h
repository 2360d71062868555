// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace millrace {

// A whole file mapped read-only. Immutable; any thread may read. The map is
// registered, so that a page that vanishes is reported by the file's name
// (see InstallTruncationHandler).
class MappedFile {
 public:
  // NOT_FOUND: no such file. INVALID_ARGUMENT: not a regular file, or empty.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(
      const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string name, const char* data, size_t size);

  const std::string name_;
  const char* const data_;
  const size_t size_;
};

// True when all of these bytes lie in one mapped file.
bool IsMapped(const void* data, size_t bytes);

// From now on a read of a mapped page that its file no longer has (SIGBUS:
// the file was truncated, or its disk fails) ends the process with status 1
// and one line on stderr that names the file. Idempotent; programs call it,
// libraries do not.
void InstallTruncationHandler();

}  // namespace millrace
