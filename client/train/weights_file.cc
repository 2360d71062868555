// SPDX-License-Identifier: Apache-2.0
#include "client/train/weights_file.h"

#include <cstring>
#include <string>
#include <utility>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/pickle/torch_file.h"
#include "common/ingest/zip_archive.h"

namespace millrace {
namespace {

constexpr char kAdvice[] =
    "give a file of torch.save(model.state_dict(), FILE), not of the model "
    "itself, or a checkpoint of millrace-train";

absl::Status NoWeights(const PickledFile& file, std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat(file.name, ": ", what, "\n", kAdvice));
}

// What OpenTorchFile says, with advice for weights.
absl::Status Unread(const absl::Status& status) {
  if (absl::IsNotFound(status)) return status;
  const std::string message(status.message());
  return absl::Status(status.code(),
                      StrCat(message.substr(0, message.find('\n')), "\n",
                             absl::IsDataLoss(status)
                                 ? "the file is damaged: copy or save it again"
                                 : kAdvice));
}

// A tensor of its own, so that the file need not stay as it is.
absl::StatusOr<at::Tensor> CopyOf(const PickledFile& file,
                                  const std::string& name,
                                  const StoredTensor& stored) {
  const DType dtype = DTypeOf(stored.format.type);
  if (dtype == DType::kNone) {
    return NoWeights(
        file, StrCat("\"", name, "\" is a tensor of ",
                     ElementName(stored.format.type), ", which no model has"));
  }
  int64_t elements = 1;  // from the first one of the view to its last
  for (size_t i = 0; i < stored.sizes.size(); ++i) {
    if (stored.sizes[i] == 0) elements = 0;
    if (elements > 0) elements += (stored.sizes[i] - 1) * stored.strides[i];
  }
  Array array = Array::Allocate(dtype, {elements});
  if (elements > 0) {
    std::memcpy(array.mutable_data(), stored.data, array.total_bytes());
  }
  MILLRACE_ASSIGN_OR_RETURN(const at::Tensor row, ViewAsTensor(array));
  return CatchTorch("copying a tensor", [&]() -> absl::StatusOr<at::Tensor> {
    return row.as_strided(stored.sizes, stored.strides).contiguous();
  });
}

// OpenTorchFile looks at no checksums: it is for files of any size.
absl::Status CheckUndamaged(const std::filesystem::path& path) {
  const auto archive = ZipArchive::Open(path);
  return archive.ok() ? CheckEntries(*archive) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> ReadWeights(
    const std::filesystem::path& path) {
  const absl::StatusOr<PickledFile> opened = OpenTorchFile(path);
  if (!opened.ok()) return Unread(opened.status());
  if (const absl::Status sound = CheckUndamaged(path); !sound.ok()) {
    return Unread(sound);
  }
  const PickledFile& file = *opened;
  const PickleValue* dict = FindKey(file.root(), "model");
  if (dict == nullptr || dict->kind != PickleKind::kDict) dict = &file.root();
  if (dict->kind != PickleKind::kDict) {
    return NoWeights(file, StrCat("it holds ", PickleKindName(dict->kind),
                                  ", not tensors by name"));
  }
  std::vector<NamedTensor> weights;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const PickleValue& key = *dict->items[i];
    const PickleValue& value = *dict->items[i + 1];
    if (key.kind != PickleKind::kText) {
      return NoWeights(file, StrCat("a key is ", PickleKindName(key.kind),
                                    ", not the name of a tensor"));
    }
    if (value.kind != PickleKind::kTensor) {
      return NoWeights(
          file, StrCat("\"", key.bytes, "\" is ", PickleKindName(value.kind),
                       ", not a tensor"));
    }
    std::string name(key.bytes);
    MILLRACE_ASSIGN_OR_RETURN(at::Tensor tensor,
                              CopyOf(file, name, value.tensor));
    weights.push_back({std::move(name), std::move(tensor)});
  }
  return weights;
}

}  // namespace millrace
