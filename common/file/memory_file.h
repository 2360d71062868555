// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/unique_fd.h"

namespace millrace {

// A file in memory, for code in this process that reads files by their paths.
// It is on no disk, and gone once this object is.
class MemoryFile {
 public:
  // Replaces the content in one step: readers see the old or the new one.
  // INTERNAL: memory files or /proc are not available.
  absl::Status Replace(std::string_view content);

  // The same after each Replace(); empty before the first.
  const std::string& path() const { return path_; }

 private:
  UniqueFd fd_;
  std::string path_;
};

}  // namespace millrace
