// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/weights_file.h"

#include <string>

#include "client/train/run/tensor_dict.h"
#include "common/base/strings.h"
#include "common/table/zip_archive.h"
#include "common/torchfile/torch_file.h"

namespace millrace {
namespace {

constexpr char kAdvice[] =
    "give a file written by torch.save(model.state_dict(), FILE), not the "
    "model itself, or a checkpoint";

// Replaces the advice in an error of reading a file by advice on weights.
absl::Status Unread(const absl::Status& status) {
  if (!absl::IsInvalidArgument(status) && !absl::IsDataLoss(status)) {
    return status;
  }
  const std::string message(status.message());
  return absl::Status(status.code(),
                      StrCat(message.substr(0, message.find('\n')), "\n",
                             absl::IsDataLoss(status)
                                 ? "the file is damaged: copy or save it again"
                                 : kAdvice));
}

// OpenTorchFile() does not check checksums, as it is for files of any size.
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
  const PickleValue* dict = FindKey(opened->root(), "model");
  if (dict == nullptr || dict->kind != PickleKind::kDict) {
    dict = &opened->root();
  }
  absl::StatusOr<std::vector<NamedTensor>> weights =
      CopyTensors(opened->name, *dict);
  if (!weights.ok()) return Unread(weights.status());
  return weights;
}

}  // namespace millrace
