// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/ready_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "common/base/strings.h"

namespace millrace {

absl::Status ReadyFile::MakeFolder() {
  Remove();
  std::string folder =
      std::filesystem::temp_directory_path() / "millrace-train-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::InternalError(StrCat(folder, ": ", std::strerror(errno)));
  }
  folder_ = folder;
  return absl::OkStatus();
}

bool ReadyFile::exists() const {
  std::error_code ignored;
  return std::filesystem::exists(path(), ignored);
}

void ReadyFile::Remove() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  folder_.clear();
}

}  // namespace millrace
