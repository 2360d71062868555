// SPDX-License-Identifier: Apache-2.0
#include "common/file/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {

absl::Status MemoryFile::Replace(std::string_view content) {
  UniqueFd next(memfd_create("millrace", MFD_CLOEXEC));
  if (next.get() < 0) return FileError("create", "a memory file", errno);
  MILLRACE_RETURN_IF_ERROR(
      WriteAll(next.get(), "a memory file", content.data(), content.size()));
  if (fd_.get() < 0) {
    fd_ = std::move(next);
    path_ = StrCat("/proc/self/fd/", fd_.get());
    if (access(path_.c_str(), R_OK) == 0) return absl::OkStatus();
    return FileError("open", path_, errno);
  }
  if (dup3(next.get(), fd_.get(), O_CLOEXEC) >= 0) return absl::OkStatus();
  return FileError("replace", "a memory file", errno);
}

}  // namespace millrace
