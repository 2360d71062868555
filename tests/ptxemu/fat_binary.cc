// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/fat_binary.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace millrace::ptxemu {
namespace {

constexpr uint32_t kMagic = 0xBA55ED50;
constexpr uint16_t kPtxKind = 1;
constexpr uint64_t kZstdFlag = 0x8000;
constexpr uint64_t kLz4Flag = 0x2000;

// The layout of fat binaries, as far as it is used.
struct BinaryWrapper {
  uint32_t magic;
  uint32_t version;
  const uint8_t* data;
  const void* unused;
};

struct BinaryHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;
};

struct BinaryEntry {
  uint16_t kind;
  uint16_t version;
  uint32_t header_bytes;
  uint64_t bytes;
  uint32_t compressed_bytes;
  uint32_t unused;
  uint16_t minor;
  uint16_t major;
  uint32_t architecture;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t flags;
  uint64_t zero;
  uint64_t plain_bytes;
};

// Reads the blocks of LZ4's format, which have no header of their own.
class Lz4Reader {
 public:
  Lz4Reader(const uint8_t* data, size_t bytes) : data_(data), bytes_(bytes) {}

  std::optional<std::string> Read(size_t plain_bytes) {
    std::string text;
    while (at_ < bytes_) {
      const uint8_t token = data_[at_++];
      const size_t literals = Length(token >> 4);
      if (at_ + literals > bytes_) return std::nullopt;
      text.append(reinterpret_cast<const char*>(data_) + at_, literals);
      at_ += literals;
      if (at_ + 2 > bytes_ || text.size() >= plain_bytes) break;
      const size_t distance = data_[at_] | data_[at_ + 1] << 8;
      at_ += 2;
      const size_t repeated = Length(token & 15) + 4;
      if (distance == 0 || distance > text.size()) return std::nullopt;
      for (size_t i = 0; i < repeated; ++i) {
        text.push_back(text[text.size() - distance]);
      }
    }
    return text;
  }

 private:
  // Adds the bytes that follow a length that does not fit into four bits.
  size_t Length(size_t length) {
    if (length < 15) return length;
    uint8_t more = 255;
    while (more == 255 && at_ < bytes_) {
      more = data_[at_++];
      length += more;
    }
    return length;
  }

  const uint8_t* const data_;
  const size_t bytes_;
  size_t at_ = 0;
};

std::optional<std::string> ReadZstd(const uint8_t* data, size_t bytes,
                                    size_t plain_bytes) {
  using Decompress = size_t (*)(void*, size_t, const void*, size_t);
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW);
  if (library == nullptr) return std::nullopt;
  static const auto decompress =
      reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress"));
  std::string text(plain_bytes, '\0');
  if (decompress(text.data(), plain_bytes, data, bytes) != plain_bytes) {
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> ReadEntry(const BinaryEntry& entry,
                                     const uint8_t* data) {
  if ((entry.flags & kZstdFlag) != 0) {
    return ReadZstd(data, entry.compressed_bytes, entry.plain_bytes);
  }
  if ((entry.flags & kLz4Flag) != 0) {
    return Lz4Reader(data, entry.compressed_bytes).Read(entry.plain_bytes);
  }
  return std::string(reinterpret_cast<const char*>(data), entry.bytes);
}

}  // namespace

std::string ExtractPtx(const void* wrapper) {
  const uint8_t* const data = static_cast<const BinaryWrapper*>(wrapper)->data;
  const auto* const header = reinterpret_cast<const BinaryHeader*>(data);
  if (header->magic != kMagic) {
    std::fprintf(stderr, "ptxemu: unknown format of a fat binary\n");
    std::abort();
  }
  const uint8_t* at = data + header->header_bytes;
  const uint8_t* const end = at + header->bytes;
  std::string newest;
  uint32_t architecture = 0;
  while (at < end) {
    const auto* const entry = reinterpret_cast<const BinaryEntry*>(at);
    if (entry->kind == kPtxKind && entry->architecture >= architecture) {
      const auto text = ReadEntry(*entry, at + entry->header_bytes);
      if (text.has_value()) {
        newest = *text;
        architecture = entry->architecture;
      } else {
        std::fprintf(stderr,
                     "ptxemu: PTX cannot be decompressed; build it with "
                     "--compress-mode=none\n");
      }
    }
    at += entry->header_bytes + entry->bytes;
  }
  if (newest.empty()) {
    std::fprintf(stderr,
                 "ptxemu: a fat binary without PTX; build it with "
                 "-DCMAKE_CUDA_ARCHITECTURES=80-virtual\n");
  }
  return newest;
}

}  // namespace millrace::ptxemu
