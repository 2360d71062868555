// SPDX-License-Identifier: Apache-2.0
// Files of torch.save and pickle.dump: pickles, storages and their tensors.
#include <algorithm>
#include <cstdint>
#include <string>

#include "common/base/check.h"
#include "common/table/tensor_rows.h"
#include "common/torchfile/torch_file.h"
#include "tests/fuzz/support/input.h"

namespace millrace::fuzz {
namespace {

constexpr size_t kMaxTensors = 16;

// No tensor may have more elements than fit into the file.
void CheckSizes(const StoredTensor& tensor, size_t file_bytes) {
  int64_t room =
      static_cast<int64_t>(file_bytes) / ElementBytes(tensor.format.type);
  if (std::ranges::count(tensor.sizes, 0) > 0) return;
  for (const int64_t size : tensor.sizes) {
    MILLRACE_CHECK(size > 0 && size <= room);
    room /= size;
  }
}

void Read(const StoredTensor& tensor, size_t file_bytes) {
  CheckSizes(tensor, file_bytes);
  if (const auto rows = TensorRows("tensor", tensor); rows.ok()) Drain(**rows);
}

void Read(const PickledFile& file, size_t file_bytes) {
  size_t tensors = 0;
  for (const PickleValue& value : file.document.values) {
    Touch(value.bytes.data(), value.bytes.size());
    PickleKindName(value.kind);
    FindKey(value, "a");
    const bool stored =
        value.kind == PickleKind::kTensor || value.kind == PickleKind::kStorage;
    if (stored && ++tensors <= kMaxTensors) Read(value.tensor, file_bytes);
  }
  (void)FindTensor(file.name, file.root(), "a");
  (void)RequireTensor(file.name, file.root(), "weight");
}

void Run(std::string_view bytes) {
  const std::filesystem::path path = WriteScratch("a.pt", bytes);
  if (const auto file = OpenTorchFile(path); file.ok()) {
    Read(*file, bytes.size());
  }
  if (const auto file = OpenPickle(path); file.ok()) {
    Read(*file, bytes.size());
  }
  if (const auto tensors = OpenPickledTensors(path); tensors.ok()) {
    size_t count = 0;
    for (const StoredTensor& tensor : *tensors) {
      if (++count <= kMaxTensors) Read(tensor, bytes.size());
    }
  }
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  millrace::fuzz::Run(millrace::fuzz::Input(data, size).Rest());
  return 0;
}
