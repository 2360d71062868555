// SPDX-License-Identifier: Apache-2.0
// Arrays as numpy.save writes them. They cover more than stores do: all integer
// types and bool, both byte orders, C and Fortran order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file/npy.h"
#include "common/table/elements.h"
#include "common/table/stored_tensor.h"

namespace millrace {

// A header with its element format.
struct ForeignNpyHeader {
  NpyHeader npy;
  ElementFormat format;
};

// Parses the header at the start of `bytes`; `file_bytes` is the size of header
// and data. Error messages begin with `name`.
// INVALID_ARGUMENT: a damaged header, a dtype that is not supported, a size
// that disagrees with the shape.
absl::StatusOr<ForeignNpyHeader> ParseForeignNpyHeader(const std::string& name,
                                                       std::string_view bytes,
                                                       uint64_t file_bytes);

// The elements that follow the header in `bytes`, which `owner` keeps alive.
// Fails as ParseForeignNpyHeader() does.
absl::StatusOr<StoredTensor> NpyTensor(const std::string& name,
                                       std::string_view bytes,
                                       std::shared_ptr<const void> owner);

// Maps a .npy file. NOT_FOUND: no such file. Also the errors of
// ParseForeignNpyHeader(); for a file of another kind, the message says how to
// convert it to .npy.
absl::StatusOr<StoredTensor> MapNpyTensor(const std::filesystem::path& path);

// Returns true if an edge list of this shape is [2, E], false if it is [E, 2].
// [2, 2] is taken as [2, E], with a warning. INVALID_ARGUMENT: another shape,
// or not integers.
absl::StatusOr<bool> EdgesAreColumns(const std::string& name, ElementType type,
                                     const std::vector<int64_t>& shape);

// "[2, 5]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace millrace
