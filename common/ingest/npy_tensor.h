// SPDX-License-Identifier: Apache-2.0
// Arrays as numpy.save writes them, wider than what stores hold: all integer
// types and bool, both byte orders, C and Fortran order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/npy.h"
#include "common/ingest/elements.h"
#include "common/ingest/stored_tensor.h"

namespace millrace {

// A header with its dtype.
struct ForeignNpyHeader {
  NpyHeader npy;
  ElementFormat format;
};

// `bytes` begin with the header; `file_bytes` are those of the whole array.
// Errors begin with `name`. INVALID_ARGUMENT: a damaged header, a dtype that
// is not read, a size that disagrees with the shape.
absl::StatusOr<ForeignNpyHeader> ParseForeignNpyHeader(const std::string& name,
                                                       std::string_view bytes,
                                                       uint64_t file_bytes);

// The elements behind the header of `bytes`, which `owner` keeps.
// Errors of ParseForeignNpyHeader.
absl::StatusOr<StoredTensor> NpyTensor(const std::string& name,
                                       std::string_view bytes,
                                       std::shared_ptr<const void> owner);

// Maps a .npy file. NOT_FOUND: no such file. Errors of ParseForeignNpyHeader;
// for another kind of file they say how to make a .npy file of it.
absl::StatusOr<StoredTensor> MapNpyTensor(const std::filesystem::path& path);

// Whether an edge list of this shape is [2, E]; else it is [E, 2]. [2, 2] is
// taken as [2, E], with a warning. INVALID_ARGUMENT: another shape, no
// integers.
absl::StatusOr<bool> EdgesAreColumns(const std::string& name, ElementType type,
                                     const std::vector<int64_t>& shape);

// "[2, 5]".
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace millrace
