// SPDX-License-Identifier: Apache-2.0
// A .npz file: the zip directory, its entries and the arrays in them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/table/npz_rows.h"
#include "common/table/zip_archive.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

constexpr size_t kMaxEntries = 8;
constexpr uint64_t kMaxBytes = 1 << 16;
constexpr int64_t kMaxIntegers = 1 << 16;

void Inflate(const std::shared_ptr<const ZipArchive>& archive,
             const ZipArchive::Entry& entry) {
  const auto reader = ZipEntryReader::Create(archive, entry);
  std::vector<char> bytes(std::min(entry.bytes / 2, kMaxBytes) + 1);
  if (!reader->Read(bytes.data(), bytes.size()).ok()) return;
  Touch(bytes.data(), bytes.size());
  if (!reader->Skip(1).ok()) return;
  (void)reader->Read(bytes.data(), bytes.size());
}

void ReadArray(const NpzFile& file, const std::string& key) {
  if (const auto rows = file.Rows(key); rows.ok()) {
    Drain(**rows);
    const int64_t count = (*rows)->rows();
    if (count <= kMaxIntegers) (void)file.Integers(key, count);
  }
  if (const auto edges = file.Edges(key); edges.ok()) Drain(**edges);
  if (const auto pairs = file.Pairs(key, key); pairs.ok()) Drain(**pairs);
  (void)file.Integers(key, 1);
  (void)file.Text(key);
}

void Run(std::string_view bytes) {
  const std::filesystem::path path = WriteScratch("a.npz", bytes);
  const auto archive = ZipArchive::Open(path);
  const auto file = NpzFile::Open(path);
  if (!archive.ok() || !file.ok()) return;
  size_t count = 0;
  for (const ZipArchive::Entry& entry : (*archive)->entries()) {
    if (++count > kMaxEntries) return;
    Inflate(*archive, entry);
    // Keys are names without ".npy".
    ReadArray(*file, entry.name.substr(0, entry.name.rfind('.')));
  }
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run(millrace::fuzz::Input(data, size).Rest());
  return 0;
}
