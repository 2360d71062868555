// SPDX-License-Identifier: Apache-2.0
// Zip files as NumPy (.npz) and PyTorch (.pt) write them. Our own reader of
// the directory, because stored entries are used where they lie in the mapped
// file, which no zip library offers; zlib does the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mapped_file.h"

namespace millrace {

// A zip file, mapped; zip64 too. Immutable; any thread may read.
class ZipArchive {
 public:
  struct Entry {
    std::string name;
    bool deflated = false;  // else stored
    std::string_view data;  // as in the file; valid while the archive lives
    uint64_t bytes = 0;     // inflated
    uint32_t crc = 0;       // of the inflated bytes
  };

  // NOT_FOUND: no such file. INVALID_ARGUMENT: no zip file, entries that are
  // encrypted or neither stored nor deflated, several disks. DATA_LOSS: a
  // directory that leaves the file or is missing. All name the file.
  static absl::StatusOr<std::shared_ptr<const ZipArchive>> Open(
      const std::filesystem::path& path);
  // The same of the bytes of a file, which must outlive the archive.
  static absl::StatusOr<std::shared_ptr<const ZipArchive>> Of(
      std::string name, std::string_view bytes);

  const std::string& name() const { return name_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Null when there is none of this name.
  const Entry* Find(std::string_view entry) const;

 private:
  explicit ZipArchive(std::string name) : name_(std::move(name)) {}
  absl::Status ReadDirectory(std::string_view bytes);

  const std::string name_;
  std::shared_ptr<const MappedFile> file_;  // null: the bytes are a caller's
  std::vector<Entry> entries_;
  // The first entry of each name.
  std::unordered_map<std::string_view, const Entry*> by_name_;
};

// The bytes of an entry, inflated, in order. Single-threaded. Gives back the
// pages of the map behind the reading position.
class ZipEntryReader {
 public:
  virtual ~ZipEntryReader() = default;

  static std::unique_ptr<ZipEntryReader> Create(
      std::shared_ptr<const ZipArchive> archive,
      const ZipArchive::Entry& entry);

  // Fills `out` with the next `count` bytes. DATA_LOSS: the entry has fewer,
  // or does not have the checksum that the directory tells (found with the
  // last byte, unless something was skipped).
  virtual absl::Status Read(void* out, size_t count) = 0;
  virtual absl::Status Skip(uint64_t count) = 0;
};

// Reads all entries. DATA_LOSS: one does not have the checksum that the
// directory tells; names it.
absl::Status CheckEntries(const std::shared_ptr<const ZipArchive>& archive);

}  // namespace millrace
