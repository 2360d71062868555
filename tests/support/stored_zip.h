// SPDX-License-Identifier: Apache-2.0
// Zip files, put together field by field.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::testing {

struct ZipEntry {
  std::string name;
  std::string content;
};

// The `bytes` lowest bytes of a number.
inline std::string LittleEndian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(number >> (8 * i) & 0xff);
  }
  return text;
}

// A zip file of stored entries. In a wide one, all sizes and offsets are in
// fields of zip64, as if they did not fit into 32 bits.
inline std::string StoredZip(const std::vector<ZipEntry>& entries,
                             bool wide = false,
                             const std::string& comment = "") {
  const auto narrow = [wide](uint64_t number) {
    return LittleEndian(wide ? 0xffffffff : number, 4);
  };
  std::string file, directory;
  for (const auto& [name, content] : entries) {
    const uint64_t size = content.size();
    const uint64_t offset = file.size();
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()),
                             content.size());
    const std::string times_and_crc =
        std::string(4, '\0') + LittleEndian(crc, 4);
    file += "PK\3\4" + std::string(6, '\0') + times_and_crc +
            LittleEndian(size, 4) + LittleEndian(size, 4) +
            LittleEndian(name.size(), 2) + std::string(2, '\0') + name +
            content;
    std::string extra;
    if (wide) {
      extra = LittleEndian(1, 2) + LittleEndian(24, 2) + LittleEndian(size, 8) +
              LittleEndian(size, 8) + LittleEndian(offset, 8);
    }
    directory += "PK\1\2" + std::string(8, '\0') + times_and_crc +
                 narrow(size) + narrow(size) + LittleEndian(name.size(), 2) +
                 LittleEndian(extra.size(), 2) + std::string(10, '\0') +
                 narrow(offset) + name + extra;
  }
  const uint64_t begin = file.size();
  file += directory;
  if (wide) {
    const uint64_t end = file.size();
    file += "PK\6\6" + LittleEndian(44, 8) + std::string(12, '\0') +
            LittleEndian(entries.size(), 8) + LittleEndian(entries.size(), 8) +
            LittleEndian(directory.size(), 8) + LittleEndian(begin, 8);
    file += "PK\6\7" + std::string(4, '\0') + LittleEndian(end, 8) +
            LittleEndian(1, 4);
  }
  return file + "PK\5\6" + std::string(4, '\0') +
         LittleEndian(entries.size(), 2) + LittleEndian(entries.size(), 2) +
         narrow(directory.size()) + narrow(begin) +
         LittleEndian(comment.size(), 2) + comment;
}

}  // namespace millrace::testing
