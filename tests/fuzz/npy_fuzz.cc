// SPDX-License-Identifier: Apache-2.0
// A .npy file, mapped and read as each kind of table. Input: the kind, then the
// file.
#include <memory>
#include <utility>

#include "common/file/npy.h"
#include "common/table/npy_rows.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

absl::StatusOr<std::unique_ptr<RowSource>> Open(
    const std::filesystem::path& path, int kind) {
  constexpr int64_t kCount = 5;
  switch (kind % 5) {
    case 0:
      return OpenNpyRows(path);
    case 1:
      return OpenNpyEdges(path);
    case 2:
      return OpenNpyIds(path, kCount);
    case 3:
      return OpenNpyIds(path, -1);
    default:
      return OpenNpyEdgeSeeds(path, kCount);
  }
}

void Run(Input input) {
  const int kind = input.Byte();
  const std::filesystem::path path = WriteScratch("a.npy", input.Rest());
  for (const DType dtype : {DType::kNone, DType::kBFloat16}) {
    if (const auto array = MapNpy(path, dtype); array.ok()) Touch(*array);
  }
  if (const auto rows = Open(path, kind); rows.ok()) Drain(**rows);
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run({data, size});
  return 0;
}
