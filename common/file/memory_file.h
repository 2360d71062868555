// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/base/unique_fd.h"

namespace millrace {

// A file in memory, for code in this process that reads files by their paths.
// It is not on any disk, and exists only as long as this object.
class MemoryFile {
 public:
  // Replaces the content in one step: readers see the old or the new one.
  // INTERNAL: memory files or /proc are not available.
  absl::Status Replace(std::string_view content);

  // Empty before the first Replace(); later calls do not change it.
  const std::string& path() const { return path_; }

 private:
  UniqueFd fd_;
  std::string path_;
};

}  // namespace millrace
