// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file/file.h"

namespace millrace {

// Reads the bytes of a file in order, inflating them if its content is gzip
// (one member or several, as pigz and bgzip write them). It does not use zlib's
// gzread(), which reads some truncated files without an error.
// Not thread-safe.
class InflatedFile {
 public:
  // NOT_FOUND: no such file. DATA_LOSS: its name ends in .gz, but it is not
  // gzip.
  static absl::StatusOr<std::unique_ptr<InflatedFile>> Open(
      const std::filesystem::path& path);
  ~InflatedFile();
  InflatedFile(const InflatedFile&) = delete;
  InflatedFile& operator=(const InflatedFile&) = delete;

  // Reads up to `count` bytes (at least 1) and returns their number, which is 0
  // only at the end. DATA_LOSS: the gzip data are truncated or damaged.
  absl::StatusOr<size_t> Read(char* out, size_t count);

  const std::string& name() const { return name_; }
  // A suitable number of bytes for one Read(), limited by the size of the file.
  size_t read_bytes() const { return input_.size(); }

 private:
  InflatedFile(std::string name, UniqueFd fd, uint64_t size);
  absl::Status StartInflating();
  absl::Status Refill();
  absl::StatusOr<size_t> Inflate(char* out, size_t count);
  absl::Status InflateSome();
  absl::Status Damaged(const char* how) const;

  const std::string name_;
  const UniqueFd fd_;
  std::vector<Bytef> input_;
  // Its next_in and avail_in describe the unread part of input_, even if the
  // file is not gzip.
  z_stream stream_ = {};
  bool gzip_ = false;
  bool in_member_ = false;
};

}  // namespace millrace
