// SPDX-License-Identifier: Apache-2.0
// Streams the arrays in .npz files, which numpy.savez, numpy.savez_compressed
// and scipy.sparse.save_npz write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/table/npy_tensor.h"
#include "common/table/row_source.h"
#include "common/table/zip_archive.h"

namespace millrace {

// A .npz file. Immutable; any thread may use it. The sources that it returns
// keep the mapping alive. Arrays may have any dtype and order that npy_tensor.h
// supports.
// Errors name the file and the key. NOT_FOUND: no such file or key.
// INVALID_ARGUMENT: an unsuitable dtype or shape. DATA_LOSS: a damaged file.
// RESOURCE_EXHAUSTED: not enough memory for the array.
class NpzFile {
 public:
  static absl::StatusOr<NpzFile> Open(const std::filesystem::path& path);

  const std::string& name() const { return archive_->name(); }
  bool Has(std::string_view key) const;

  // An array of one or two dimensions, with a row for each index of the first.
  // A matrix that is compressed and in Fortran order is held in memory.
  absl::StatusOr<std::unique_ptr<RowSource>> Rows(std::string_view key) const;
  // An edge list as rows (source, destination). Its shape is [2, E], or [E, 2]
  // if the first dimension is not 2. Logs a warning for [2, 2].
  absl::StatusOr<std::unique_ptr<RowSource>> Edges(std::string_view key) const;
  // Two one-dimensional arrays of the same length, side by side.
  absl::StatusOr<std::unique_ptr<RowSource>> Pairs(
      std::string_view first, std::string_view second) const;
  // All elements of an integer array of at most one dimension.
  // INVALID_ARGUMENT, before anything is read: it does not have `count`
  // elements.
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view key,
                                                int64_t count) const;
  // A string or bytes object without dimensions.
  absl::StatusOr<std::string> Text(std::string_view key) const;

 private:
  struct NpzArray {
    std::string name;  // "FILE: key"
    const ZipArchive::Entry* entry = nullptr;
    ForeignNpyHeader header;
  };

  explicit NpzFile(std::shared_ptr<const ZipArchive> archive)
      : archive_(std::move(archive)) {}
  absl::StatusOr<const ZipArchive::Entry*> FindEntry(
      std::string_view key) const;
  absl::StatusOr<NpzArray> FindArray(std::string_view key) const;
  absl::StatusOr<std::unique_ptr<RowSource>> FortranRows(
      const NpzArray& array) const;

  std::shared_ptr<const ZipArchive> archive_;  // shared with the arrays
};

}  // namespace millrace
