// SPDX-License-Identifier: Apache-2.0
// What fuzz targets take their inputs apart with, and where they put them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "common/base/array.h"
#include "common/ingest/row_source.h"

namespace millrace::fuzz {

// The bytes that libFuzzer made up, taken from the front. What is not there
// any more is 0, or empty.
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
  // Bytes behind their number, two bytes.
  std::string_view Piece() { return Take(Short()); }
  std::string_view Rest() { return Take(rest_.size()); }

 private:
  std::string_view rest_;
};

// A folder of this process, removed when it ends.
const std::filesystem::path& Scratch();
// Writes the file anew and returns its path.
std::filesystem::path WriteScratch(const std::filesystem::path& name,
                                   std::string_view bytes);

// Reads all of it, so that a sanitizer sees what is not there.
void Touch(const void* data, size_t bytes);
inline void Touch(const Array& array) {
  Touch(array.data(), array.total_bytes());
}
// Reads all rows of a table in every way; only the first ones of a long one.
void Drain(const RowSource& source);

}  // namespace millrace::fuzz

// libFuzzer calls it with each input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
