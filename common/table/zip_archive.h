// SPDX-License-Identifier: Apache-2.0
// Zip files as NumPy (.npz) and PyTorch (.pt) write them. This code reads the
// directory itself because stored entries are used in place in the mapped file,
// which no zip library supports; zlib does the rest.
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
#include "common/file/mapped_file.h"

namespace millrace {

// A mapped zip or zip64 file. Immutable; any thread may read it.
class ZipArchive {
 public:
  struct Entry {
    std::string name;
    bool deflated = false;  // otherwise it is stored
    std::string_view data;  // as in the file; valid as long as the archive
    uint64_t bytes = 0;     // size after inflating
    uint32_t crc = 0;       // CRC-32 of the inflated bytes
  };

  // NOT_FOUND: no such file. INVALID_ARGUMENT: not a zip file, entries that are
  // encrypted or neither stored nor deflated, or several disks. DATA_LOSS: the
  // directory is missing or exceeds the file. All messages name the file.
  static absl::StatusOr<std::shared_ptr<const ZipArchive>> Open(
      const std::filesystem::path& path);
  // The same for the bytes of a file, which must outlive the archive.
  static absl::StatusOr<std::shared_ptr<const ZipArchive>> Of(
      std::string name, std::string_view bytes);

  const std::string& name() const { return name_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Null if there is no entry of this name.
  const Entry* Find(std::string_view entry) const;

 private:
  explicit ZipArchive(std::string name) : name_(std::move(name)) {}
  absl::Status ReadDirectory(std::string_view bytes);

  const std::string name_;
  std::shared_ptr<const MappedFile> file_;  // null if the caller owns the bytes
  std::vector<Entry> entries_;
  // The first entry of each name.
  std::unordered_map<std::string_view, const Entry*> by_name_;
};

// Reads the inflated bytes of an entry in order, and drops the mapped pages
// that have been read. Not thread-safe.
class ZipEntryReader {
 public:
  virtual ~ZipEntryReader() = default;

  static std::unique_ptr<ZipEntryReader> Create(
      std::shared_ptr<const ZipArchive> archive,
      const ZipArchive::Entry& entry);

  // Fills `out` with the next `count` bytes. The last byte completes the check
  // of the checksum, which is not made if bytes of a stored entry were skipped.
  // DATA_LOSS: the entry has fewer bytes, or another checksum than in the
  // directory.
  virtual absl::Status Read(void* out, size_t count) = 0;
  virtual absl::Status Skip(uint64_t count) = 0;
};

// Reads all entries. DATA_LOSS: the checksum of an entry, which the message
// names, is not that in the directory.
absl::Status CheckEntries(const std::shared_ptr<const ZipArchive>& archive);

}  // namespace millrace
