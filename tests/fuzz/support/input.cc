// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/support/input.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace millrace::fuzz {

const std::filesystem::path& Scratch() {
  static const std::filesystem::path* const folder = [] {
    auto* path = new std::filesystem::path(
        std::filesystem::temp_directory_path() /
        ("millrace-fuzz-" + std::to_string(getpid())));
    std::filesystem::create_directories(*path);
    std::atexit([] { std::filesystem::remove_all(Scratch()); });
    return path;
  }();
  return *folder;
}

std::filesystem::path WriteScratch(const std::filesystem::path& name,
                                   std::string_view bytes) {
  const std::filesystem::path path = Scratch() / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

void Touch(const void* data, size_t bytes) {
  [[maybe_unused]] static volatile uint64_t sink;
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum += at[i];
  sink = sum;
}

namespace {

constexpr int64_t kMaxValues = 1 << 14;  // number of values read at a time
constexpr int kMaxReads = 64;

template <typename T, typename Read>
void DrainAs(const RowSource& source, Read read) {
  const int64_t rows = std::max<int64_t>(kMaxValues / source.width() / 2, 1);
  if (rows * source.width() > kMaxValues) return;
  const auto reader = source.Open();
  if (!reader.ok()) return;
  std::vector<T> values(static_cast<size_t>(rows * source.width()));
  int64_t first = 0;
  for (int i = 0; i < kMaxReads; ++i) {
    const absl::StatusOr<int64_t> got = read(**reader, rows, values.data());
    if (!got.ok() || *got == 0) return;
    Touch(values.data(),
          static_cast<size_t>(*got * source.width()) * sizeof(T));
    Touch(source.Where(first).data(), 1);
    first += *got;
  }
}

}  // namespace

void Drain(const RowSource& source) {
  (void)source.Integral();
  DrainAs<int64_t>(source,
                   [](RowReader& reader, int64_t rows, int64_t* values) {
                     return reader.ReadIntegers(rows, values);
                   });
  DrainAs<float>(source, [](RowReader& reader, int64_t rows, float* values) {
    return reader.ReadFloats(rows, values);
  });
}

}  // namespace millrace::fuzz
