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
#include "common/base/file.h"

namespace millrace {

// The bytes of a file in order, inflated if it is gzip (by its content; of one
// member or several, as pigz and bgzip write them). Not by zlib's gzread(),
// which takes some files that were cut off for whole ones.
// Single-threaded.
class InflatedFile {
 public:
  // NOT_FOUND: no such file. DATA_LOSS: its name ends in .gz, and it is not
  // gzip.
  static absl::StatusOr<std::unique_ptr<InflatedFile>> Open(
      const std::filesystem::path& path);
  ~InflatedFile();
  InflatedFile(const InflatedFile&) = delete;
  InflatedFile& operator=(const InflatedFile&) = delete;

  // The next bytes: up to `count`, which is not 0, and none at the end only.
  // DATA_LOSS: the gzip data are cut off or damaged.
  absl::StatusOr<size_t> Read(char* out, size_t count);

  const std::string& name() const { return name_; }
  // Worth reading at once: about as much as the file has.
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
  // What is not taken yet of input_ is its next_in and avail_in, also where
  // nothing is inflated.
  z_stream stream_ = {};
  bool gzip_ = false;
  bool in_member_ = false;
};

}  // namespace millrace
