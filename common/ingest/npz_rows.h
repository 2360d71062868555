// SPDX-License-Identifier: Apache-2.0
// The arrays of .npz files, which numpy.savez, numpy.savez_compressed and
// scipy.sparse.save_npz write, read as streams.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/npy_tensor.h"
#include "common/ingest/row_source.h"
#include "common/ingest/zip_archive.h"

namespace millrace {

// A .npz file. Immutable; any thread may call. The sources that it hands out
// keep the map alive. Arrays may have any dtype and order of npy_tensor.h.
// Errors name file and key: NOT_FOUND: no such file or key; INVALID_ARGUMENT: a
// dtype or shape that does not fit; DATA_LOSS: a damaged file;
// RESOURCE_EXHAUSTED: less memory than the array needs.
class NpzFile {
 public:
  static absl::StatusOr<NpzFile> Open(const std::filesystem::path& path);

  const std::string& name() const { return archive_->name(); }
  bool Has(std::string_view key) const;

  // An array of one or two dimensions, one row per index of the first. A
  // matrix that is both compressed and in Fortran order is kept in memory.
  absl::StatusOr<std::unique_ptr<RowSource>> Rows(std::string_view key) const;
  // An edge list as rows (source, destination): [2, E], or [E, 2] when the
  // first dimension is not 2. Warns of [2, 2].
  absl::StatusOr<std::unique_ptr<RowSource>> Edges(std::string_view key) const;
  // Two arrays of one dimension and the same length, side by side.
  absl::StatusOr<std::unique_ptr<RowSource>> Pairs(
      std::string_view first, std::string_view second) const;
  // All elements of an integer array of one dimension (or none), which must
  // have `count` elements; this is checked before anything is read.
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view key,
                                                int64_t count) const;
  // A text, or bytes, of no dimension.
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

  std::shared_ptr<const ZipArchive> archive_;
};

}  // namespace millrace
