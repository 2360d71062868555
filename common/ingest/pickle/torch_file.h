// SPDX-License-Identifier: Apache-2.0
// Files that torch.save and pickle.dump wrote, with their tensors where they
// lie in the mapped file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/pickle/pickle_value.h"
#include "common/ingest/zip_archive.h"

namespace millrace {

// A file's value. Its tensors keep the map alive; texts and other values
// live as long as this.
struct PickledFile {
  std::string name;
  std::shared_ptr<const void> owner;  // of the bytes of texts
  PickleDocument document;

  const PickleValue& root() const { return *document.root; }
};

// What torch.save wrote, as a zip file or (before PyTorch 1.6, or when asked
// to) as a sequence of pickles.
// NOT_FOUND: no such file. INVALID_ARGUMENT: not such a file, big endian,
// dtypes that stores lack. DATA_LOSS: a damaged file. Errors of Unpickle.
absl::StatusOr<PickledFile> OpenTorchFile(const std::filesystem::path& path);

// Like OpenTorchFile, for a zip file that is already open.
absl::StatusOr<PickledFile> ReadTorchZip(
    std::shared_ptr<const ZipArchive> archive);

// What pickle.dump wrote.
absl::StatusOr<PickledFile> OpenPickle(const std::filesystem::path& path);

// A tensor that torch.save wrote.
absl::StatusOr<StoredTensor> OpenTorchTensor(const std::filesystem::path& path);

// The tensors of a file to which pickle.dump appended one after another.
absl::StatusOr<std::vector<StoredTensor>> OpenPickledTensors(
    const std::filesystem::path& path);

// The tensor of a dictionary, or nothing when it holds None or no such key;
// `name` begins the message. INVALID_ARGUMENT: something else than a tensor.
absl::StatusOr<std::optional<StoredTensor>> FindTensor(const std::string& name,
                                                       const PickleValue& dict,
                                                       std::string_view key);
// The same for one that must be there.
absl::StatusOr<StoredTensor> RequireTensor(const std::string& name,
                                           const PickleValue& dict,
                                           std::string_view key);

}  // namespace millrace
