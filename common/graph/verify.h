// SPDX-License-Identifier: Apache-2.0
// Checks that a store is what docs/format.md says.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/store.h"

namespace millrace {

// Reads every file of the mapped partitions and of the splits, and compares its
// size and XXH3-64 with store.json. Shows progress on stderr.
// DATA_LOSS: a file differs; the message names the first. CANCELLED:
// interrupted.
absl::Status VerifyFiles(const Store& store);

// Opens the store with the given partitions, or all if the list is empty.
// Checks store.json, the files of these partitions and of the splits, that the
// store's folder has no files that store.json does not list, and every
// invariant of docs/format.md. Without the other partitions it checks of each
// invariant what these files show: an id that another partition owns only for
// being in range, and against the table of original ids if that is here. Needs
// about one bit of memory per node or edge id, and a few passes over the data.
// DATA_LOSS: a violation; the message names the file and index of the first.
// Also the errors of Store::Open() and VerifyFiles().
absl::Status VerifyStore(const std::filesystem::path& path,
                         std::vector<int> partitions = {});

// Whether a file of the store belongs to a mapped partition, or to no partition
// at all.
bool IsMappedFile(const Store& store, std::string_view path);

// Like VerifyFiles() for one file, but does not disturb the page cache (see
// UncachedReader) and shows no progress. `pace` is called with the size in
// bytes of each piece that was read, and may sleep to limit the rate.
// CANCELLED: it returned false.
absl::Status ScrubFile(const Store& store, const FileInfo& file,
                       const std::function<bool(size_t bytes)>& pace);

// Like ScrubFile(), but checks the copy that Store::LoadIntoMemory() made.
// `file` must be loaded.
absl::Status ScrubLoadedFile(const Store& store, const FileInfo& file,
                             const std::function<bool(size_t bytes)>& pace);

}  // namespace millrace
