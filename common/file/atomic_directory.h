// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// A directory that appears whole or not at all: it is written beside its target
// under a temporary name and published by one rename.
// States: open -> committed. Destroying it while open removes the temporary
// directory; SIGINT and SIGTERM must unwind the program (see interrupt.h) so
// that this happens. Not thread-safe.
class AtomicDirectory {
 public:
  // Makes the same checks as Create(), for callers that have long work to do
  // before they call it.
  static absl::Status CheckTarget(const std::filesystem::path& target);
  // ALREADY_EXISTS: `target` exists (a store is never overwritten).
  // INVALID_ARGUMENT: it cannot name a new directory. Also the errors of
  // FileError().
  static absl::StatusOr<AtomicDirectory> Create(
      const std::filesystem::path& target);
  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;
  ~AtomicDirectory();

  // Where to write. Valid until Commit().
  const std::filesystem::path& path() const { return temporary_; }
  const std::filesystem::path& target() const { return target_; }

  // fsyncs the directories and renames the tree to the target.
  // ALREADY_EXISTS: the target has appeared since Create(). Also the errors of
  // FileError().
  absl::Status Commit();

 private:
  AtomicDirectory(std::filesystem::path temporary,
                  std::filesystem::path target);

  std::filesystem::path temporary_;  // empty once committed or moved from
  std::filesystem::path target_;
};

}  // namespace millrace
