// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace millrace {

// The file with which a server reports that it is ready, in a folder of its
// own among the system's temporary ones.
// Not thread-safe.
class ReadyFile {
 public:
  ReadyFile() = default;
  ReadyFile(const ReadyFile&) = delete;
  ReadyFile& operator=(const ReadyFile&) = delete;
  ~ReadyFile() { Remove(); }

  // Makes a new folder, in which a server may make the file; removes the one
  // before. INTERNAL: the system cannot make it (says why).
  absl::Status MakeFolder();
  std::filesystem::path path() const { return folder_ / "port"; }
  bool exists() const;
  // Removes the file and its folder.
  void Remove();

 private:
  std::filesystem::path folder_;  // empty if there is none
};

}  // namespace millrace
