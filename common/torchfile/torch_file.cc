// SPDX-License-Identifier: Apache-2.0
#include "common/torchfile/torch_file.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/host_memory.h"
#include "common/base/quoted.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/mapped_file.h"
#include "common/torchfile/unpickler.h"

namespace millrace {
namespace {

// The first number of a file that is not a zip file; see
// torch/serialization.py.
constexpr std::string_view kLegacyMagic(
    "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kLegacyProtocol = 1001;
constexpr std::string_view kZipStart = "PK";
// Messages cut longer names of entries.
constexpr size_t kMaxEntryName = 200;

// The content of a persistent id, a tuple made by torch.save: "storage", the
// storage's type, its key, a device, its number of elements and, in old files,
// None.
struct StorageId {
  ElementType type = ElementType::kUint8;
  std::string key;
  int64_t elements = 0;
};

absl::Status Refused(const std::string& name, std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat(name, ": ", what,
             "\nload the file with torch.load and save its tensors again with "
             "torch.save"));
}

// The error for a file that torch.load cannot read either.
absl::Status Foreign(const std::string& name, std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat(name, ": ", what, "\ngive a file that torch.save wrote"));
}

absl::StatusOr<ElementType> TypeOfStorage(const std::string& where,
                                          std::string_view type) {
  static const std::map<std::string_view, ElementType> kTypes = {
      {"torch DoubleStorage", ElementType::kFloat64},
      {"torch FloatStorage", ElementType::kFloat32},
      {"torch HalfStorage", ElementType::kFloat16},
      {"torch BFloat16Storage", ElementType::kBFloat16},
      {"torch LongStorage", ElementType::kInt64},
      {"torch IntStorage", ElementType::kInt32},
      {"torch ShortStorage", ElementType::kInt16},
      {"torch CharStorage", ElementType::kInt8},
      {"torch ByteStorage", ElementType::kUint8},
      {"torch BoolStorage", ElementType::kBool}};
  const auto found = kTypes.find(type);
  if (found != kTypes.end()) return found->second;
  return Refused(where, StrCat("a tensor in a ", type,
                               ", which is not a supported dtype"));
}

absl::StatusOr<StorageId> ParseStorageId(const std::string& where,
                                         const PickleValue& id) {
  const std::vector<const PickleValue*>& items = id.items;
  const bool valid =
      id.kind == PickleKind::kTuple && items.size() >= 5 && items.size() <= 6 &&
      items[0]->bytes == "storage" && items[1]->kind == PickleKind::kGlobal &&
      items[2]->kind == PickleKind::kText &&
      items[4]->kind == PickleKind::kInteger && items[4]->integer >= 0 &&
      (items.size() == 5 || items[5]->kind == PickleKind::kNone);
  if (!valid) return Refused(where, "a persistent id that names no storage");
  StorageId storage;
  MILLRACE_ASSIGN_OR_RETURN(storage.type,
                            TypeOfStorage(where, items[1]->bytes));
  storage.key = items[2]->bytes;
  storage.elements = items[4]->integer;
  return storage;
}

// The elements of storage `id`, which are at the start of `bytes`.
absl::StatusOr<StoredTensor> StorageIn(const std::string& where,
                                       const StorageId& id,
                                       std::string_view bytes,
                                       std::shared_ptr<const void> owner) {
  const uint64_t needed =
      SaturatedProduct({id.elements, ElementBytes(id.type)});
  if (needed > bytes.size()) {
    return absl::DataLossError(
        StrCat(where, ": storage ", Quoted(id.key), " has ", bytes.size(),
               " bytes, but ", needed, " are needed for its ", id.elements,
               " elements of ", ElementName(id.type)));
  }
  return StoredTensor{
      {id.type}, {id.elements}, {1}, bytes.data(), std::move(owner)};
}

// Reads a torch file that is not a zip file. It consists of pickles (a magic
// number, a protocol number, a description of the machine, the value, and the
// keys of its storages), followed by the storages, each preceded by its number
// of elements.
class LegacyReader {
 public:
  LegacyReader(std::string name, std::string_view bytes,
               std::shared_ptr<const void> owner)
      : name_(std::move(name)), bytes_(bytes), owner_(std::move(owner)) {}

  absl::StatusOr<PickleDocument> Read() {
    MILLRACE_RETURN_IF_ERROR(CheckStart());
    const size_t value_at = next_;
    // The first pass finds the keys and the end of the value. The places of the
    // storages are not known yet, so it uses the file's start for all.
    MILLRACE_RETURN_IF_ERROR(
        ReadPickle([this](const std::string& where,
                          const StorageId& id) -> absl::StatusOr<StoredTensor> {
          ids_.emplace(id.key, id);
          return StorageIn(where, id, bytes_, owner_);
        }).status());
    MILLRACE_RETURN_IF_ERROR(FindStorages());
    next_ = value_at;
    return ReadPickle([this](const std::string& where, const StorageId& id) {
      return StorageIn(where, id, storages_[id.key], owner_);
    });
  }

 private:
  using Loader = std::function<absl::StatusOr<StoredTensor>(
      const std::string& where, const StorageId&)>;

  absl::StatusOr<PickleDocument> ReadPickle(const Loader& load = nullptr) {
    PickleSource source{name_, bytes_.substr(next_), nullptr, nullptr};
    if (load) {
      source.storage =
          [&](const std::string& where,
              const PickleValue& value) -> absl::StatusOr<StoredTensor> {
        MILLRACE_ASSIGN_OR_RETURN(const StorageId id,
                                  ParseStorageId(where, value));
        return load(where, id);
      };
    }
    MILLRACE_ASSIGN_OR_RETURN(PickleDocument document, Unpickle(source));
    next_ += document.bytes;
    return document;
  }

  absl::Status CheckStart() {
    const absl::StatusOr<PickleDocument> magic = ReadPickle();
    if (!magic.ok() || magic->root->kind != PickleKind::kHuge ||
        magic->root->bytes != kLegacyMagic) {
      return Foreign(name_, "this is not a file written by torch.save");
    }
    MILLRACE_ASSIGN_OR_RETURN(const PickleDocument protocol, ReadPickle());
    if (protocol.root->integer != kLegacyProtocol) {
      return Refused(name_,
                     StrCat("protocol ", protocol.root->integer, "; only ",
                            kLegacyProtocol, " is supported"));
    }
    MILLRACE_ASSIGN_OR_RETURN(const PickleDocument machine, ReadPickle());
    const PickleValue* little = FindKey(*machine.root, "little_endian");
    if (little == nullptr || little->integer != 1) {
      return Refused(name_,
                     "this was written on a machine with another byte order");
    }
    return absl::OkStatus();
  }

  absl::Status FindStorages() {
    MILLRACE_ASSIGN_OR_RETURN(const PickleDocument keys, ReadPickle());
    for (const PickleValue* key : keys.root->items) {
      const auto id = ids_.find(std::string(key->bytes));
      if (id == ids_.end()) continue;
      int64_t elements = -1;
      if (bytes_.size() - next_ >= sizeof(elements)) {
        std::memcpy(&elements, bytes_.data() + next_, sizeof(elements));
        next_ += sizeof(elements);
      }
      const auto item = static_cast<size_t>(ElementBytes(id->second.type));
      if (elements != id->second.elements ||
          static_cast<uint64_t>(elements) > (bytes_.size() - next_) / item) {
        return absl::DataLossError(
            StrCat(name_, ": storage ", Quoted(id->first), " of ",
                   id->second.elements, " elements is not where it should be"));
      }
      const size_t size = static_cast<size_t>(elements) * item;
      storages_[id->first] = bytes_.substr(next_, size);
      next_ += size;
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const std::string_view bytes_;
  const std::shared_ptr<const void> owner_;  // shared with the tensors
  size_t next_ = 0;
  std::map<std::string, StorageId> ids_;
  std::map<std::string, std::string_view> storages_;
};

absl::StatusOr<const ZipArchive::Entry*> StoredEntry(const std::string& where,
                                                     const ZipArchive& archive,
                                                     const std::string& name) {
  const ZipArchive::Entry* entry = archive.Find(name);
  if (entry == nullptr) {
    return absl::DataLossError(
        StrCat(where, ": the file has no entry ", Quoted(name, kMaxEntryName)));
  }
  if (entry->deflated) {
    return Refused(where,
                   StrCat("entry ", Quoted(name, kMaxEntryName),
                          " is compressed, which torch.save never does"));
  }
  return entry;
}

// The folder in the zip file that contains all entries, with its '/'.
absl::StatusOr<std::string> FindStem(const ZipArchive& archive) {
  constexpr std::string_view kValue = "data.pkl";
  for (const ZipArchive::Entry& entry : archive.entries()) {
    if (!absl::EndsWith(entry.name, "/data.pkl")) continue;
    return entry.name.substr(0, entry.name.size() - kValue.size());
  }
  return Foreign(archive.name(),
                 "a zip file that torch.save did not write: "
                 "it has no data.pkl");
}

}  // namespace

absl::StatusOr<PickledFile> ReadTorchZip(
    std::shared_ptr<const ZipArchive> archive) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string stem, FindStem(*archive));
  if (archive->Find(StrCat(stem, "constants.pkl")) != nullptr) {
    return absl::InvalidArgumentError(StrCat(
        archive->name(),
        ": a TorchScript archive, not a file written by torch.save\nsave its "
        "tensors with torch.save(torch.jit.load(FILE).state_dict(), "
        "OTHER)"));
  }
  const ZipArchive::Entry* order = archive->Find(StrCat(stem, "byteorder"));
  if (order != nullptr && order->data != "little") {
    return Refused(archive->name(),
                   "this was written on a machine with another byte order");
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const ZipArchive::Entry* value,
      StoredEntry(archive->name(), *archive, StrCat(stem, "data.pkl")));
  PickleSource source{archive->name(), value->data, nullptr, nullptr};
  source.storage =
      [&](const std::string& where,
          const PickleValue& pickled) -> absl::StatusOr<StoredTensor> {
    MILLRACE_ASSIGN_OR_RETURN(const StorageId id,
                              ParseStorageId(where, pickled));
    MILLRACE_ASSIGN_OR_RETURN(
        const ZipArchive::Entry* entry,
        StoredEntry(where, *archive, StrCat(stem, "data/", id.key)));
    return StorageIn(where, id, entry->data, archive);
  };
  MILLRACE_ASSIGN_OR_RETURN(PickleDocument document, Unpickle(source));
  return PickledFile{archive->name(), archive, std::move(document)};
}

namespace {

// The source for tensors written by pickle.dump, whose storages are themselves
// torch files.
PickleSource StreamSource(const std::string& name,
                          const std::shared_ptr<const MappedFile>& file,
                          size_t offset) {
  PickleSource source{name, file->bytes().substr(offset), nullptr, nullptr};
  source.load_bytes =
      [name, file](std::string_view bytes) -> absl::StatusOr<StoredTensor> {
    MILLRACE_ASSIGN_OR_RETURN(PickleDocument document,
                              LegacyReader(name, bytes, file).Read());
    if (document.root->kind == PickleKind::kStorage) {
      return document.root->tensor;
    }
    return Refused(name, "the bytes of a tensor contain no storage");
  };
  return source;
}

absl::StatusOr<StoredTensor> AsTensor(const std::string& name,
                                      const PickleValue& value) {
  if (value.kind == PickleKind::kTensor) return value.tensor;
  return Refused(name, StrCat("a tensor is needed here, but this is ",
                              PickleKindName(value.kind)));
}

}  // namespace

absl::StatusOr<PickledFile> OpenTorchFile(const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                            MappedFile::Open(path));
  if (file->bytes().starts_with(kZipStart)) {
    MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const ZipArchive> archive,
                              ZipArchive::Open(path));
    return ReadTorchZip(std::move(archive));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      PickleDocument document,
      LegacyReader(path.string(), file->bytes(), file).Read());
  return PickledFile{path.string(), file, std::move(document)};
}

absl::StatusOr<PickledFile> OpenPickle(const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                            MappedFile::Open(path));
  MILLRACE_ASSIGN_OR_RETURN(PickleDocument document,
                            Unpickle(StreamSource(path.string(), file, 0)));
  return PickledFile{path.string(), file, std::move(document)};
}

absl::StatusOr<StoredTensor> OpenTorchTensor(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const PickledFile file, OpenTorchFile(path));
  return AsTensor(file.name, file.root());
}

absl::StatusOr<std::vector<StoredTensor>> OpenPickledTensors(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file,
                            MappedFile::Open(path));
  std::vector<StoredTensor> tensors;
  for (size_t offset = 0; offset < file->bytes().size();) {
    MILLRACE_ASSIGN_OR_RETURN(
        const PickleDocument document,
        Unpickle(StreamSource(
            StrCat(path.string(), ": tensor ", tensors.size()), file, offset)));
    MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor,
                              AsTensor(path.string(), *document.root));
    tensors.push_back(std::move(tensor));
    offset += document.bytes;
  }
  return tensors;
}

absl::StatusOr<std::optional<StoredTensor>> FindTensor(const std::string& name,
                                                       const PickleValue& dict,
                                                       std::string_view key) {
  const PickleValue* value = FindKey(dict, key);
  if (value == nullptr || value->kind == PickleKind::kNone) return std::nullopt;
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor,
                            AsTensor(StrCat(name, ": ", key), *value));
  return tensor;
}

absl::StatusOr<StoredTensor> RequireTensor(const std::string& name,
                                           const PickleValue& dict,
                                           std::string_view key) {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<StoredTensor> tensor,
                            FindTensor(name, dict, key));
  if (tensor.has_value()) return *std::move(tensor);
  return absl::InvalidArgumentError(StrCat(name, ": there is no ", key));
}

}  // namespace millrace
