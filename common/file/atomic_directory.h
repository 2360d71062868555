// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// A directory that appears whole or not at all: written beside its target
// under a temporary name, published by one rename.
// Single-threaded. States: open -> committed. If destroyed while open, the
// temporary directory is removed. SIGINT and SIGTERM are expected to unwind
// the program (see interrupt.h) so that the destructor runs.
class AtomicDirectory {
 public:
  // The checks of `target` that Create() makes, for callers that have long work
  // to do before they call it.
  static absl::Status CheckTarget(const std::filesystem::path& target);
  // ALREADY_EXISTS: `target` exists (a store is never overwritten).
  // INVALID_ARGUMENT: it cannot name a new directory.
  static absl::StatusOr<AtomicDirectory> Create(
      const std::filesystem::path& target);
  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;
  ~AtomicDirectory();

  // Where to write. Valid until Commit().
  const std::filesystem::path& path() const { return temporary_; }
  const std::filesystem::path& target() const { return target_; }

  // fsyncs the directory tree and renames it to the target.
  absl::Status Commit();

 private:
  AtomicDirectory(std::filesystem::path temporary,
                  std::filesystem::path target);

  std::filesystem::path temporary_;  // empty once committed or moved from
  std::filesystem::path target_;
};

}  // namespace millrace
