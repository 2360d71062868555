// SPDX-License-Identifier: Apache-2.0
#include "common/file/atomic_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random_hex.h"
#include "common/base/status_macros.h"
#include "common/file/file.h"

namespace millrace {
namespace fs = std::filesystem;
namespace {

bool Exists(const fs::path& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0;
}

absl::Status ExistsError(const fs::path& target) {
  return absl::AlreadyExistsError(absl::StrCat(
      target.native(), " exists; remove it or choose another ", "place"));
}

// rename() that never replaces its target. Returns an error number, 0 on
// success.
int RenameNew(const fs::path& from, const fs::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // This file system does not support that. At worst, an empty directory that
  // appears between the check and the rename is replaced.
  if (Exists(to)) return EEXIST;
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

absl::Status SyncTree(const fs::path& root) {
  std::error_code error;
  fs::recursive_directory_iterator entry(root, error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    if (entry->is_directory(error)) {
      MILLRACE_RETURN_IF_ERROR(SyncPath(entry->path()));
    }
  }
  if (error) return FileError("list", root, error.value());
  return SyncPath(root);
}

// Drops a trailing slash, which would make filename() empty.
fs::path Clean(const fs::path& target) {
  const fs::path normal = target.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

fs::path ParentOf(const fs::path& target) {
  const fs::path parent = target.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

}  // namespace

absl::Status AtomicDirectory::CheckTarget(const fs::path& target) {
  const fs::path clean = Clean(target);
  const std::string name = clean.filename().string();
  if (name.empty() || name == "." || name == "..") {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", target.native(), "' is not the name of a new directory"));
  }
  return Exists(clean) ? ExistsError(clean) : absl::OkStatus();
}

absl::StatusOr<AtomicDirectory> AtomicDirectory::Create(
    const fs::path& target) {
  MILLRACE_RETURN_IF_ERROR(CheckTarget(target));
  const fs::path clean = Clean(target);
  const std::string name = clean.filename().string();
  const fs::path parent = ParentOf(clean);
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return FileError("create", parent, error.value());

  while (true) {
    const fs::path temporary =
        parent / absl::StrCat(".", name, ".tmp-", getpid(), "-", RandomHex(8));
    if (mkdir(temporary.c_str(), 0777) == 0) {
      return AtomicDirectory(temporary, clean);
    }
    if (errno != EEXIST) return FileError("create", temporary, errno);
  }
}

AtomicDirectory::AtomicDirectory(fs::path temporary, fs::path target)
    : temporary_(std::move(temporary)), target_(std::move(target)) {}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : temporary_(std::exchange(other.temporary_, fs::path())),
      target_(std::move(other.target_)) {}

AtomicDirectory::~AtomicDirectory() {
  if (temporary_.empty()) return;
  std::error_code ignored;  // a destructor cannot report it
  fs::remove_all(temporary_, ignored);
}

absl::Status AtomicDirectory::Commit() {
  MILLRACE_RETURN_IF_ERROR(SyncTree(temporary_));
  if (const int error = RenameNew(temporary_, target_); error != 0) {
    if (error == EEXIST || error == ENOTEMPTY) return ExistsError(target_);
    return FileError("rename to", target_, error);
  }
  temporary_.clear();
  return SyncPath(ParentOf(target_));
}

}  // namespace millrace
