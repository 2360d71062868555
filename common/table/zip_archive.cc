// SPDX-License-Identifier: Apache-2.0
#include "common/table/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/array.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"

namespace millrace {
namespace {

// From APPNOTE.TXT 6.3, sections 4.3.7 to 4.3.16.
constexpr std::string_view kEndMagic = "PK\5\6";
constexpr std::string_view kEnd64Magic = "PK\6\6";
constexpr std::string_view kLocator64Magic = "PK\6\7";
constexpr std::string_view kCentralMagic = "PK\1\2";
constexpr std::string_view kLocalMagic = "PK\3\4";
constexpr size_t kEndBytes = 22;
constexpr size_t kLocator64Bytes = 20;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kCentralBytes = 46;
constexpr size_t kLocalBytes = 30;
constexpr size_t kMaxComment = 65535;
constexpr uint16_t kZip64Field = 1;
// The MS-DOS attribute of folders, which all systems set.
constexpr uint8_t kFolderMark = 0x10;
constexpr uint64_t kIn64Field = 0xffffffff;  // the size is in the zip64 field
// Maximum number of bytes that one byte of deflated data can expand to: 2 bits
// can stand for up to 258 bytes.
constexpr uint64_t kMostInflated = 1032;
constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kMinDropBytes = 4 << 20;

// Reads a little-endian number; the caller must have checked the bounds.
template <typename T>
T Number(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

class DirectoryReader {
 public:
  DirectoryReader(const std::string& name, std::string_view bytes)
      : name_(name), bytes_(bytes) {}

  absl::StatusOr<std::vector<ZipArchive::Entry>> Read() {
    MILLRACE_ASSIGN_OR_RETURN(std::string_view rest, FindDirectory());
    std::vector<ZipArchive::Entry> entries;
    while (!rest.empty()) {
      MILLRACE_ASSIGN_OR_RETURN(ZipArchive::Entry entry, ReadEntry(rest));
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  absl::Status Damaged(std::string_view what) const {
    return absl::DataLossError(StrCat(name_, ": damaged zip file: ", what));
  }

  absl::StatusOr<std::string_view> Range(uint64_t offset, uint64_t size,
                                         std::string_view what) const {
    if (offset <= bytes_.size() && size <= bytes_.size() - offset) {
      return bytes_.substr(offset, size);
    }
    return Damaged(StrCat(what, " of ", size, " bytes at ", offset,
                          " exceeds the file of ", bytes_.size(), " bytes"));
  }

  absl::StatusOr<std::string_view> FindDirectory() const {
    const size_t last =
        bytes_.size() < kEndBytes
            ? std::string_view::npos
            : bytes_.rfind(kEndMagic, bytes_.size() - kEndBytes);
    if (last == std::string_view::npos ||
        bytes_.size() - last > kEndBytes + kMaxComment) {
      return bytes_.starts_with(kLocalMagic)
                 ? Damaged("it is cut off: its directory is missing")
                 : absl::InvalidArgumentError(
                       StrCat(name_, ": not a zip file"));
    }
    uint64_t size = Number<uint32_t>(bytes_, last + 12);
    uint64_t offset = Number<uint32_t>(bytes_, last + 16);
    if (last >= kLocator64Bytes &&
        bytes_.substr(last - kLocator64Bytes).starts_with(kLocator64Magic)) {
      MILLRACE_ASSIGN_OR_RETURN(
          const std::string_view end,
          Range(Number<uint64_t>(bytes_, last - kLocator64Bytes + 8),
                kEnd64Bytes, "the zip64 end record"));
      if (!end.starts_with(kEnd64Magic)) return Damaged("no zip64 end record");
      size = Number<uint64_t>(end, 40);
      offset = Number<uint64_t>(end, 48);
    }
    return Range(offset, size, "the directory");
  }

  // Reads one entry from the front of `rest`, the remaining directory, and
  // removes it.
  absl::StatusOr<ZipArchive::Entry> ReadEntry(std::string_view& rest) const {
    if (rest.size() < kCentralBytes || !rest.starts_with(kCentralMagic)) {
      return Damaged("its directory has no entry where one should be");
    }
    const auto name_size = Number<uint16_t>(rest, 28);
    const auto extra_size = Number<uint16_t>(rest, 30);
    const size_t size = kCentralBytes + name_size + extra_size +
                        Number<uint16_t>(rest, 32);  // the comment
    if (rest.size() < size) return Damaged("its directory is cut off");
    ZipArchive::Entry entry;
    entry.name = rest.substr(kCentralBytes, name_size);
    entry.crc = Number<uint32_t>(rest, 16);
    entry.bytes = Number<uint32_t>(rest, 24);
    uint64_t stored = Number<uint32_t>(rest, 20);
    uint64_t offset = Number<uint32_t>(rest, 42);
    MILLRACE_RETURN_IF_ERROR(CheckKind(rest, entry));
    MILLRACE_RETURN_IF_ERROR(
        Read64(rest.substr(kCentralBytes + name_size, extra_size),
               {&entry.bytes, &stored, &offset}));
    MILLRACE_ASSIGN_OR_RETURN(const std::string_view local,
                              Range(offset, kLocalBytes, entry.name));
    if (!local.starts_with(kLocalMagic)) {
      return Damaged(StrCat("no entry ", entry.name, " at ", offset));
    }
    MILLRACE_ASSIGN_OR_RETURN(
        entry.data, Range(offset + kLocalBytes + Number<uint16_t>(local, 26) +
                              Number<uint16_t>(local, 28),
                          stored, entry.name));
    if (!entry.deflated && entry.bytes != stored) {
      return Damaged(StrCat(entry.name, " has two sizes"));
    }
    if (entry.bytes / kMostInflated > stored) {
      return Damaged(StrCat(entry.name, " has ", stored,
                            " compressed bytes, which cannot become ",
                            entry.bytes));
    }
    // Readers that trust the mark would read nothing, without an error.
    if ((Number<uint8_t>(rest, 38) & kFolderMark) != 0 && entry.bytes > 0) {
      return Damaged(StrCat(entry.name, " is a folder that has content"));
    }
    rest.remove_prefix(size);
    return entry;
  }

  absl::Status CheckKind(std::string_view rest,
                         ZipArchive::Entry& entry) const {
    const auto flags = Number<uint16_t>(rest, 8);
    const auto method = Number<uint16_t>(rest, 10);
    entry.deflated = method == Z_DEFLATED;
    if ((flags & 1) == 0 && (method == 0 || entry.deflated)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(StrCat(
        name_, ": entry ", entry.name,
        (flags & 1) != 0 ? " is encrypted"
                         : StrCat(" is compressed with method ", method),
        "; only stored and deflated entries are supported\nsave the file again "
        "without it"));
  }

  // Reads the numbers that do not fit in 32 bits, which are in an extra field,
  // in this order.
  absl::Status Read64(std::string_view extra,
                      std::initializer_list<uint64_t*> numbers) const {
    std::string_view field;
    while (extra.size() >= 4) {
      const size_t size = Number<uint16_t>(extra, 2);
      if (size > extra.size() - 4) break;
      if (Number<uint16_t>(extra, 0) == kZip64Field) {
        field = extra.substr(4, size);
      }
      extra.remove_prefix(4 + size);
    }
    for (uint64_t* number : numbers) {
      if (*number != kIn64Field) continue;
      // NumPy omits the field if a number is exactly 2^32 - 1.
      if (field.size() < sizeof(uint64_t)) continue;
      *number = Number<uint64_t>(field, 0);
      field.remove_prefix(sizeof(uint64_t));
    }
    return absl::OkStatus();
  }

  const std::string& name_;
  const std::string_view bytes_;
};

class CheckedReader : public ZipEntryReader {
 public:
  CheckedReader(std::shared_ptr<const ZipArchive> archive,
                const ZipArchive::Entry& entry)
      : archive_(std::move(archive)), entry_(entry) {}

  absl::Status Read(void* out, size_t count) override {
    MILLRACE_RETURN_IF_ERROR(Take(count));
    MILLRACE_RETURN_IF_ERROR(Fill(static_cast<char*>(out), count));
    return Check(out, count);
  }

 protected:
  virtual absl::Status Fill(char* out, size_t count) = 0;

  absl::Status Damaged(std::string_view what) const {
    return absl::DataLossError(
        StrCat(archive_->name(), ": entry ", entry_.name, ": ", what));
  }
  absl::Status Take(uint64_t count) {
    if (count > entry_.bytes - position_) {
      return Damaged(StrCat("it has ", entry_.bytes, " bytes, but ", count,
                            " more are needed after ", position_));
    }
    position_ += count;
    return absl::OkStatus();
  }
  absl::Status Check(const void* data, size_t count) {
    if (skipped_) return absl::OkStatus();
    crc_ = crc32_z(crc_, static_cast<const Bytef*>(data), count);
    if (position_ < entry_.bytes || crc_ == entry_.crc) return absl::OkStatus();
    return Damaged("its checksum does not match");
  }
  // Drops the pages of the first `count` bytes, which have been read, if there
  // are enough of them.
  void DropBefore(size_t count) {
    if (count < dropped_ + kMinDropBytes) return;
    const auto size = static_cast<int64_t>(entry_.data.size());
    DropRows(Array::Borrow(DType::kUint8, {size}, entry_.data.data(), nullptr),
             static_cast<int64_t>(dropped_), static_cast<int64_t>(count));
    dropped_ = count;
  }

  const std::shared_ptr<const ZipArchive> archive_;  // shared with its opener
  const ZipArchive::Entry& entry_;
  uint64_t position_ = 0;  // in inflated bytes
  bool skipped_ = false;

 private:
  uLong crc_ = 0;
  size_t dropped_ = 0;
};

class StoredReader final : public CheckedReader {
 public:
  using CheckedReader::CheckedReader;

  absl::Status Skip(uint64_t count) override {
    skipped_ = skipped_ || count > 0;
    return Take(count);
  }

 private:
  absl::Status Fill(char* out, size_t count) override {
    const size_t first = position_ - count;
    if (count > 0) std::memcpy(out, entry_.data.data() + first, count);
    DropBefore(position_);
    return absl::OkStatus();
  }
};

class DeflatedReader final : public CheckedReader {
 public:
  DeflatedReader(std::shared_ptr<const ZipArchive> archive,
                 const ZipArchive::Entry& entry)
      : CheckedReader(std::move(archive), entry) {
    // Raw deflate data, without zlib's header.
    ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK;
  }
  ~DeflatedReader() override {
    if (ready_) inflateEnd(&stream_);
  }

  absl::Status Skip(uint64_t count) override {
    std::vector<char> block(std::min<uint64_t>(count, kReadBytes));
    while (count > 0) {
      const size_t bytes = std::min<uint64_t>(count, block.size());
      MILLRACE_RETURN_IF_ERROR(Read(block.data(), bytes));
      count -= bytes;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fill(char* out, size_t count) override {
    if (!ready_) return absl::ResourceExhaustedError("zlib: no memory");
    while (count > 0) {
      const size_t bytes = std::min(count, kReadBytes);
      MILLRACE_RETURN_IF_ERROR(Inflate(out, bytes));
      out += bytes;
      count -= bytes;
    }
    DropBefore(next_);
    return absl::OkStatus();
  }

  absl::Status Inflate(char* out, size_t count) {
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(count);
    while (stream_.avail_out > 0) {
      const size_t bytes = std::min(entry_.data.size() - next_, kReadBytes);
      stream_.next_in = const_cast<Bytef*>(
          reinterpret_cast<const Bytef*>(entry_.data.data() + next_));
      stream_.avail_in = static_cast<uInt>(bytes);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      next_ += bytes - stream_.avail_in;
      if (code == Z_STREAM_END && stream_.avail_out == 0) break;
      if (code != Z_OK) return Damaged("its compressed data are damaged");
    }
    return absl::OkStatus();
  }

  z_stream stream_ = {};
  bool ready_ = false;
  size_t next_ = 0;  // in compressed bytes
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ZipArchive>> ZipArchive::Open(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                            MappedFile::Open(path));
  std::shared_ptr<ZipArchive> archive(new ZipArchive(path.string()));
  archive->file_ = file;
  MILLRACE_RETURN_IF_ERROR(archive->ReadDirectory(file->bytes()));
  return archive;
}

absl::StatusOr<std::shared_ptr<const ZipArchive>> ZipArchive::Of(
    std::string name, std::string_view bytes) {
  std::shared_ptr<ZipArchive> archive(new ZipArchive(std::move(name)));
  MILLRACE_RETURN_IF_ERROR(archive->ReadDirectory(bytes));
  return archive;
}

absl::Status ZipArchive::ReadDirectory(std::string_view bytes) {
  MILLRACE_ASSIGN_OR_RETURN(entries_, DirectoryReader(name_, bytes).Read());
  for (const Entry& entry : entries_) by_name_.emplace(entry.name, &entry);
  return absl::OkStatus();
}

const ZipArchive::Entry* ZipArchive::Find(std::string_view entry) const {
  const auto found = by_name_.find(entry);
  return found == by_name_.end() ? nullptr : found->second;
}

std::unique_ptr<ZipEntryReader> ZipEntryReader::Create(
    std::shared_ptr<const ZipArchive> archive, const ZipArchive::Entry& entry) {
  if (entry.deflated) {
    return std::make_unique<DeflatedReader>(std::move(archive), entry);
  }
  return std::make_unique<StoredReader>(std::move(archive), entry);
}

absl::Status CheckEntries(const std::shared_ptr<const ZipArchive>& archive) {
  std::vector<char> block(kReadBytes);
  for (const ZipArchive::Entry& entry : archive->entries()) {
    const auto reader = ZipEntryReader::Create(archive, entry);
    uint64_t left = entry.bytes;
    do {  // at least once, since an empty entry has a checksum too
      const size_t count = std::min<uint64_t>(left, block.size());
      MILLRACE_RETURN_IF_ERROR(reader->Read(block.data(), count));
      left -= count;
    } while (left > 0);
  }
  return absl::OkStatus();
}

}  // namespace millrace
