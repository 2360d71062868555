// SPDX-License-Identifier: Apache-2.0
// Reads files written by torch.save and pickle.dump. Tensors are read in place
// in the mapped file and keep it mapped.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/table/zip_archive.h"
#include "common/torchfile/pickle_value.h"

namespace millrace {

// The value in a file. Its strings, containers and numbers live as long as this
// object.
struct PickledFile {
  std::string name;
  std::shared_ptr<const void> owner;  // keeps the bytes of strings alive
  PickleDocument document;

  const PickleValue& root() const { return *document.root; }
};

// Opens a file written by torch.save: a zip file or, before PyTorch 1.6 or on
// request, a sequence of pickles.
// NOT_FOUND: no such file. INVALID_ARGUMENT: another kind of file, big endian,
// or dtypes that are not supported. DATA_LOSS: a damaged file. Also the errors
// of Unpickle(). The functions below fail in the same ways.
absl::StatusOr<PickledFile> OpenTorchFile(const std::filesystem::path& path);

// Like OpenTorchFile(), for a zip file that is already open.
absl::StatusOr<PickledFile> ReadTorchZip(
    std::shared_ptr<const ZipArchive> archive);

// Opens a file written by pickle.dump.
absl::StatusOr<PickledFile> OpenPickle(const std::filesystem::path& path);

// Opens a file with a single tensor, written by torch.save.
absl::StatusOr<StoredTensor> OpenTorchTensor(const std::filesystem::path& path);

// Opens a file to which pickle.dump appended tensors one after the other.
absl::StatusOr<std::vector<StoredTensor>> OpenPickledTensors(
    const std::filesystem::path& path);

// The tensor that a dictionary has for a key; nullopt if the value is None or
// there is no such key. INVALID_ARGUMENT: the value is not a tensor; the
// message begins with `name`.
absl::StatusOr<std::optional<StoredTensor>> FindTensor(const std::string& name,
                                                       const PickleValue& dict,
                                                       std::string_view key);
// The same, but INVALID_ARGUMENT if there is no tensor.
absl::StatusOr<StoredTensor> RequireTensor(const std::string& name,
                                           const PickleValue& dict,
                                           std::string_view key);

}  // namespace millrace
