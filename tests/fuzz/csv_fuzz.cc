// SPDX-License-Identifier: Apache-2.0
// Text tables, plain and gzip. Input: how to read the file, then the file.
#include <memory>
#include <optional>

#include "common/table/csv_rows.h"
#include "common/table/line_reader.h"
#include "common/table/triple_rows.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

void ReadTriples(const std::filesystem::path& path, bool named) {
  static constexpr int64_t kCount = 5;
  const auto separator = FindSeparator(path);
  if (!separator.ok()) return;
  const auto numbering = [named](std::string kind) {
    return named ? std::make_shared<Numbering>(std::move(kind))
                 : std::make_shared<Numbering>(std::move(kind), kCount, "file");
  };
  TripleFile file = {.path = path,
                     .separator = *separator,
                     .entities = numbering("entity"),
                     .relations = numbering("relation")};
  if (!ScanTriples(file).ok()) return;
  Drain(*TripleRows(file, {.width = 2, .places = {0, 2}}));
  Drain(*TripleRows(file, {.width = 1, .places = {1, 1}, .offset = 3}));
}

void Run(Input input) {
  const uint8_t how = input.Byte();
  const std::filesystem::path path =
      WriteScratch((how & 1) != 0 ? "a.csv.gz" : "a.csv", input.Rest());
  switch (how / 2 % 4) {
    case 0:
      if (const auto rows = OpenCsvRows(path); rows.ok()) Drain(**rows);
      return;
    case 1:
      if (const auto rows = OpenCsvRows(path, 2); rows.ok()) Drain(**rows);
      return;
    case 2:
      (void)ReadSmallCsv(path);
      return;
    default:
      return ReadTriples(path, (how & 8) != 0);
  }
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run({data, size});
  return 0;
}
