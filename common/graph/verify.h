// SPDX-License-Identifier: Apache-2.0
// Whether a store is what docs/format.md says.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "common/graph/store.h"

namespace millrace {

// Reads every file of the mapped partitions and of the splits and compares
// size and XXH3-64 with store.json. DATA_LOSS names the first that differs.
// CANCELLED: interrupted. Shows progress on stderr.
absl::Status VerifyFiles(const Store& store);

// Opens the store with all partitions and checks every file, that there are
// no others, and every invariant of docs/format.md. DATA_LOSS names file and
// index of the first violation; else the errors of Store::Open and
// VerifyFiles. Memory: one bit per node and edge id; time: a few passes.
absl::Status VerifyStore(const std::filesystem::path& path);

// Whether a file of the store belongs to a mapped partition, or to none.
bool IsMappedFile(const Store& store, std::string_view path);

// As VerifyFiles() for one file, but leaves the page cache alone (see
// UncachedReader) and shows nothing. `pace` is told of the bytes of each piece
// that was read; with false it ends the reading: CANCELLED.
absl::Status ScrubFile(const Store& store, const FileInfo& file,
                       const std::function<bool(size_t bytes)>& pace);

// Like ScrubFile(), but checks the copy that Store::LoadIntoMemory() made.
// `file` must be loaded.
absl::Status ScrubLoadedFile(const Store& store, const FileInfo& file,
                             const std::function<bool(size_t bytes)>& pace);

}  // namespace millrace
