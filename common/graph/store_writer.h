// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/file/atomic_directory.h"
#include "common/file/npy.h"
#include "common/graph/manifest.h"

namespace millrace {

// Writes a dataset or store: arrays by relative path, then store.json with all
// checksums. Nothing is visible before Commit(), and nothing is left behind if
// it is not called. Not thread-safe.
class StoreWriter {
 public:
  // ALREADY_EXISTS: `target` exists.
  static absl::StatusOr<StoreWriter> Create(
      const std::filesystem::path& target);

  // Writes a whole array as one file, creating its folders.
  absl::Status Write(const std::string& relative_path, const Array& array);

  // Opens a file for streaming. Pass the writer to Close() once all rows are
  // appended. `rows` is negative if it is not known yet.
  absl::StatusOr<std::unique_ptr<NpyWriter>> Open(
      const std::string& relative_path, DType dtype,
      std::vector<int64_t> row_shape, int64_t rows);
  absl::Status Close(const std::string& relative_path,
                     std::unique_ptr<NpyWriter> writer);

  // Copies a file of another store byte for byte, or makes a hard link if the
  // file system allows it. DATA_LOSS: its size is not the one in `file`.
  absl::Status CopyFrom(const std::filesystem::path& store_root,
                        const FileInfo& file);

  // A folder for intermediate files, inside the temporary directory; removed
  // by Commit().
  std::filesystem::path scratch() const;

  // Fills in uuid, fingerprints and files of `manifest`
  // (`dataset_fingerprint` only if it is empty), writes store.json and
  // publishes the directory. INVALID_ARGUMENT: an inconsistent manifest.
  absl::Status Commit(Manifest manifest);

 private:
  explicit StoreWriter(AtomicDirectory directory)
      : directory_(std::move(directory)) {}

  AtomicDirectory directory_;
  std::vector<FileInfo> files_;
};

}  // namespace millrace
