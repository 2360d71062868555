// SPDX-License-Identifier: Apache-2.0
// .npy files (NumPy formats 1.0 to 3.0): mapped for reading, streamed for
// writing. Writers produce format 1.0, C order, little endian, with the data
// at a multiple of 64 bytes (docs/format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/base/dtype.h"

namespace millrace {

struct NpyHeader {
  std::string descr;  // NumPy's name of the dtype, e.g. "<f4"
  DType dtype = DType::kNone;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t data_offset = 0;  // bytes from the start of the file
};

// Parses the header at the start of `bytes`. If `real_dtype` is kBFloat16, a
// "<u2" file is taken as bfloat16. INVALID_ARGUMENT: bad magic, unknown dtype,
// big endian, truncated header, or a shape whose size in bytes does not fit in
// 63 bits; the message says which.
absl::StatusOr<NpyHeader> ParseNpyHeader(std::string_view bytes,
                                         DType real_dtype = DType::kNone);
// The same for any NumPy dtype; `dtype` is kNone if stores do not support it.
// CheckNpySize() checks whether the shape is too large.
absl::StatusOr<NpyHeader> ParseAnyNpyHeader(std::string_view bytes);

// INVALID_ARGUMENT: the data, with `item_bytes` per element, do not fit in 63
// bits, or a file of `file_bytes` does not have exactly that many bytes after
// its header.
absl::Status CheckNpySize(const NpyHeader& header, size_t item_bytes,
                          uint64_t file_bytes);

// The bytes that precede the data, padded to a multiple of 64.
std::string FormatNpyHeader(DType dtype, const std::vector<int64_t>& shape);

// Maps a .npy file read-only. The returned array keeps the mapping alive, is in
// C order, and may be read by any thread. If `real_dtype` is kBFloat16, a "<u2"
// file is taken as bfloat16.
// NOT_FOUND: no such file. INVALID_ARGUMENT: a damaged header, a size that
// disagrees with the shape, misaligned data, Fortran order with more than one
// dimension. All messages name the file.
absl::StatusOr<Array> MapNpy(const std::filesystem::path& path,
                             DType real_dtype = DType::kNone);

// Advises the kernel how the pages of `array` will be accessed (best effort);
// kDone drops them as DropRows() does. Both do nothing if the array is not
// mapped.
enum class Access { kNormal, kSequential, kRandom, kDone };
void AdviseAccess(const Array& array, Access access);
// Drops the mapped pages of rows [begin, end) from this process, though not
// from the page cache, so that resident memory stays flat during a streaming
// pass.
void DropRows(const Array& array, int64_t begin, int64_t end);

// Writes one .npy file sequentially; the number of rows may be unknown until
// Finish(). Also computes XXH3-64 of the whole file.
// Not thread-safe. Destroying an unfinished writer leaves the partial file
// behind, for the owner of its directory to remove (see AtomicDirectory).
class NpyWriter {
 public:
  // `row_shape` is the shape without the first dimension. If `rows` is
  // negative, the number is unknown, and Finish() writes it into the header,
  // which has room for any number. ALREADY_EXISTS: the file exists.
  static absl::StatusOr<std::unique_ptr<NpyWriter>> Create(
      const std::filesystem::path& path, DType dtype,
      std::vector<int64_t> row_shape, int64_t rows);
  virtual ~NpyWriter() = default;

  // Appends whole rows. INTERNAL: `bytes` is not a multiple of the row size.
  virtual absl::Status Append(const void* data, size_t bytes) = 0;

  struct Summary {
    int64_t rows = 0;
    uint64_t file_bytes = 0;
    uint64_t xxh3 = 0;
  };
  // Flushes, fsyncs and closes. INTERNAL: not as many rows as Create() was
  // given.
  virtual absl::StatusOr<Summary> Finish() = 0;
};

// Writes `array` as one .npy file.
absl::StatusOr<NpyWriter::Summary> WriteNpy(const std::filesystem::path& path,
                                            const Array& array);

}  // namespace millrace
