// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace millrace {

// A whole file mapped read-only. Immutable; any thread may read. The mapping is
// registered so that the error message names the file if a page vanishes (see
// InstallTruncationHandler).
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
  MappedFile(std::string name, std::string_view bytes, uint64_t device,
             uint64_t inode);

  const std::string name_;
  const char* const data_;
  const size_t size_;
};

// Whether all of these bytes lie in one mapped file.
bool IsMapped(const void* data, size_t bytes);

// From now on, reading a mapped page that its file no longer has (SIGBUS: the
// file was truncated, or its disk failed) ends the process with status 1 and a
// message on stderr that names the file. Idempotent; programs call it,
// libraries do not.
void InstallTruncationHandler();

// While this object lives, a mapped file that becomes shorter within its last
// page ends the process in the same way. No signal reports that case: the
// system fills the page with zeros. A thread checks the sizes of all mapped
// files every `period`, so data read before the next check may be wrong.
class TruncationWatch {
 public:
  explicit TruncationWatch(absl::Duration period = absl::Seconds(1));
  ~TruncationWatch();
  TruncationWatch(const TruncationWatch&) = delete;
  TruncationWatch& operator=(const TruncationWatch&) = delete;

 private:
  void Run(absl::Duration period);

  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, since it uses the other members
};

}  // namespace millrace
