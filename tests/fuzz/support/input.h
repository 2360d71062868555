// SPDX-License-Identifier: Apache-2.0
// Helpers for fuzz targets: parse inputs and write files.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "common/base/array.h"
#include "common/table/row_source.h"

namespace millrace::fuzz {

// The bytes made by libFuzzer, consumed from the front. Past the end everything
// reads as 0 or empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    const std::string_view byte = Take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  size_t Short() {
    const size_t low = Byte();
    return low | size_t{Byte()} << 8;
  }
  std::string_view Take(size_t bytes) {
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // Bytes preceded by their count in two bytes.
  std::string_view Piece() { return Take(Short()); }
  std::string_view Rest() { return Take(rest_.size()); }

 private:
  std::string_view rest_;
};

// A directory of this process, removed when it ends.
const std::filesystem::path& Scratch();
// Overwrites the file and returns its path.
std::filesystem::path WriteScratch(const std::filesystem::path& name,
                                   std::string_view bytes);

// Reads all bytes, so that a sanitizer reports invalid ones.
void Touch(const void* data, size_t bytes);
inline void Touch(const Array& array) {
  Touch(array.data(), array.total_bytes());
}
// Reads all rows of a table in every way, or only the first of a long one.
void Drain(const RowSource& source);

}  // namespace millrace::fuzz

// libFuzzer calls this with each input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
