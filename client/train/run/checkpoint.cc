// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/checkpoint.h"

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <caffe2/serialize/inline_container.h>
#include <fcntl.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "client/tensor/torch_status.h"
#include "client/train/run/run_identity.h"
#include "client/train/run/tensor_dict.h"
#include "common/base/field_error.h"
#include "common/base/quoted.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/table/zip_archive.h"
#include "common/torchfile/torch_file.h"

namespace millrace {
namespace {

constexpr char kFormat[] = "millrace checkpoint";
constexpr int64_t kVersion = 1;
// Far more than any run reaches, with room for sums.
constexpr int64_t kMaxCounter = int64_t{1} << 53;
constexpr size_t kMaxTextBytes = size_t{16} << 20;

// Takes the next bytes of a file.
using Sink = std::function<absl::Status(const void* data, size_t size)>;

// Returns a dictionary that torch.load's safe mode reads as a plain one.
c10::impl::GenericDict NewDict() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

// A file contains whole storages, so a view needs a copy of its own part.
at::Tensor WithOwnStorage(const at::Tensor& tensor) {
  const at::Tensor own = tensor.detach();
  return own.storage().nbytes() == own.nbytes() ? own : own.clone();
}

c10::IValue FromTensors(const std::vector<NamedTensor>& tensors) {
  c10::impl::GenericDict dict = NewDict();
  for (const NamedTensor& named : tensors) {
    dict.insert(named.name, WithOwnStorage(named.tensor));
  }
  return dict;
}

template <typename Value>
c10::IValue FromMap(const std::map<std::string, Value>& map) {
  c10::impl::GenericDict dict = NewDict();
  for (const auto& [name, value] : map) dict.insert(name, value);
  return dict;
}

// Writes the file format of torch.save to `sink`, piece by piece. LibTorch's
// pickle_save cannot be used, because it marks each dictionary with its
// TorchScript type by a global that torch.load's safe mode, the default since
// 2.6, refuses.
absl::Status TorchSave(const c10::IValue& value, const Sink& sink) {
  std::string pickled;
  torch::jit::Pickler pickler(
      [&pickled](const char* data, size_t size) { pickled.append(data, size); },
      /*tensor_table=*/nullptr, /*type_renamer=*/nullptr,
      /*memoized_class_types=*/nullptr, /*get_tensor_id=*/nullptr,
      /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();

  absl::Status taken;
  caffe2::serialize::PyTorchStreamWriter writer(
      [&](const void* data, size_t size) {
        // If told of a failure, the writer would throw in its destructor. So it
        // goes on after one, but its output is dropped.
        if (taken.ok()) taken = sink(data, size);
        return size;
      });
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  int number = 0;
  for (const at::Tensor& tensor : pickler.tensorData()) {
    if (!taken.ok()) break;
    const auto storage = torch::jit::getWriteableTensorData(tensor);
    writer.writeRecord(absl::StrCat("data/", number++), storage.data(),
                       storage.sizeInBytes());
  }
  writer.writeEndOfFile();
  return taken;
}

// Makes scalar tensors, since old versions of the safe mode do not read floats.
c10::IValue FromDoubles(const std::map<std::string, double>& map) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, value] : map) {
    tensors.push_back({name, at::full({}, value, at::kDouble)});
  }
  return FromTensors(tensors);
}

absl::Status Serialize(const Checkpoint& checkpoint, const Sink& sink) {
  return CatchTorch("saving a checkpoint", [&]() -> absl::Status {
    c10::impl::GenericDict dict = NewDict();
    dict.insert("format", kFormat);
    dict.insert("version", kVersion);
    dict.insert("model", FromTensors(checkpoint.model));
    dict.insert("optimizer", FromTensors(checkpoint.optimizer));
    dict.insert("ranks", FromTensors(checkpoint.ranks));
    dict.insert("identity", FromMap(checkpoint.identity));
    dict.insert("counters", FromMap(checkpoint.counters));
    dict.insert("values", FromDoubles(checkpoint.values));
    return TorchSave(dict, sink);
  });
}

// Writes a file that is on disk when this returns.
absl::Status WriteWhole(const std::filesystem::path& path,
                        const Checkpoint& checkpoint) {
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) return FileError("create", path, errno);
  MILLRACE_RETURN_IF_ERROR(
      Serialize(checkpoint, [&](const void* data, size_t size) {
        return WriteAll(fd.get(), path, data, size);
      }));
  if (fsync(fd.get()) != 0) return FileError("fsync", path, errno);
  return absl::OkStatus();
}

constexpr Reason kUnreadable = {"unreadable_checkpoint"};

// LibTorch's pickle_load is not used, because it trusts what a pickle says of
// its texts and tensors.
absl::StatusOr<const PickleValue*> Find(const PickledFile& file,
                                        std::string_view key, PickleKind kind) {
  const PickleValue* value = FindKey(file.root(), key);
  if (value != nullptr && value->kind == kind) return value;
  return absl::DataLossError(
      StrCat(file.name, ": \"", key, "\" is ",
             value == nullptr ? "missing"
                              : StrCat(PickleKindName(value->kind), ", not ",
                                       PickleKindName(kind))));
}

// Returns a dictionary of values of `kind`, converted by `value_of`.
template <typename Value, typename ValueOf>
absl::StatusOr<std::map<std::string, Value>> FindMap(const PickledFile& file,
                                                     std::string_view key,
                                                     PickleKind kind,
                                                     ValueOf value_of) {
  MILLRACE_ASSIGN_OR_RETURN(const PickleValue* dict,
                            Find(file, key, PickleKind::kDict));
  std::map<std::string, Value> map;
  size_t text_bytes = 0;  // many values may be one text of the pickle
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2) {
    const PickleValue& name = *dict->items[i];
    const PickleValue& value = *dict->items[i + 1];
    if (name.kind != PickleKind::kText || value.kind != kind) {
      return absl::DataLossError(StrCat(file.name, ": \"", key, "\" has ",
                                        PickleKindName(value.kind), " for ",
                                        PickleKindName(name.kind)));
    }
    text_bytes += value.bytes.size();
    if (text_bytes > kMaxTextBytes) {
      return absl::DataLossError(StrCat(file.name, ": the texts of \"", key,
                                        "\" have more than ", kMaxTextBytes,
                                        " bytes"));
    }
    map[std::string(name.bytes)] = value_of(value);
  }
  return map;
}

absl::StatusOr<std::vector<NamedTensor>> FindTensors(const PickledFile& file,
                                                     std::string_view key) {
  MILLRACE_ASSIGN_OR_RETURN(const PickleValue* dict,
                            Find(file, key, PickleKind::kDict));
  return CopyTensors(file.name, *dict);
}

absl::StatusOr<std::map<std::string, int64_t>> FindCounters(
    const PickledFile& file) {
  MILLRACE_ASSIGN_OR_RETURN(
      auto counters,
      FindMap<int64_t>(file, "counters", PickleKind::kInteger,
                       [](const PickleValue& value) { return value.integer; }));
  for (const auto& [name, count] : counters) {
    if (count >= 0 && count <= kMaxCounter) continue;
    return absl::DataLossError(
        StrCat(file.name, ": counter ", Quoted(name), " is ", count,
               ", which is not in the range 0 to ", kMaxCounter));
  }
  return counters;
}

absl::StatusOr<std::map<std::string, double>> FindDoubles(
    const PickledFile& file, std::string_view key) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors,
                            FindTensors(file, key));
  std::map<std::string, double> map;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.numel() != 1) {
      return absl::DataLossError(
          StrCat(file.name, ": ", Quoted(named.name), " has shape ",
                 ShapeText(named.tensor.sizes()), ", but must be one number"));
    }
    map[named.name] = named.tensor.item().toDouble();
  }
  return map;
}

absl::StatusOr<Checkpoint> FromFile(const PickledFile& file) {
  MILLRACE_ASSIGN_OR_RETURN(const PickleValue* format,
                            Find(file, "format", PickleKind::kText));
  MILLRACE_ASSIGN_OR_RETURN(const PickleValue* version,
                            Find(file, "version", PickleKind::kInteger));
  if (format->bytes != kFormat || version->integer != kVersion) {
    return absl::DataLossError(
        StrCat(file.name, ": its format is ", Quoted(format->bytes),
               ", version ", version->integer, "; only \"", kFormat,
               "\", version ", kVersion, " is supported"));
  }
  Checkpoint checkpoint;
  MILLRACE_ASSIGN_OR_RETURN(checkpoint.model, FindTensors(file, "model"));
  MILLRACE_ASSIGN_OR_RETURN(checkpoint.optimizer,
                            FindTensors(file, "optimizer"));
  if (FindKey(file.root(), "ranks") != nullptr) {  // not in old files
    MILLRACE_ASSIGN_OR_RETURN(checkpoint.ranks, FindTensors(file, "ranks"));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      checkpoint.identity,
      FindMap<std::string>(
          file, "identity", PickleKind::kText,
          [](const PickleValue& value) { return std::string(value.bytes); }));
  MILLRACE_ASSIGN_OR_RETURN(checkpoint.counters, FindCounters(file));
  MILLRACE_ASSIGN_OR_RETURN(checkpoint.values, FindDoubles(file, "values"));
  return checkpoint;
}

absl::StatusOr<Checkpoint> FromBytes(std::string_view bytes,
                                     const std::string& origin) {
  MILLRACE_ASSIGN_OR_RETURN(const std::shared_ptr<const ZipArchive> archive,
                            ZipArchive::Of(origin, bytes));
  // Otherwise a run could resume from damaged weights.
  MILLRACE_RETURN_IF_ERROR(CheckEntries(archive));
  MILLRACE_ASSIGN_OR_RETURN(const PickledFile file, ReadTorchZip(archive));
  return FromFile(file);
}

std::string Shown(const std::string& value) {
  return value.empty() ? "none" : value;
}

}  // namespace

absl::StatusOr<std::string> SerializeCheckpoint(const Checkpoint& checkpoint) {
  std::string bytes;
  MILLRACE_RETURN_IF_ERROR(
      Serialize(checkpoint, [&bytes](const void* data, size_t size) {
        bytes.append(static_cast<const char*>(data), size);
        return absl::OkStatus();
      }));
  return bytes;
}

std::filesystem::path TemporaryOf(const std::filesystem::path& path) {
  return path.string() + ".tmp";
}

absl::Status WriteCheckpoint(const std::filesystem::path& path,
                             const Checkpoint& checkpoint) {
  const absl::Status written = ReplaceFile(
      path, TemporaryOf(path),
      [&](const auto& temporary) { return WriteWhole(temporary, checkpoint); });
  if (!written.ok()) {
    return WithReason(
        absl::Status(written.code(),
                     StrCat("the checkpoint ", path.string(),
                            " was not written: ", written.message())),
        Reason{"checkpoint_not_written"});
  }
  return SyncPath(path.parent_path().empty() ? "." : path.parent_path());
}

absl::StatusOr<Checkpoint> ParseCheckpoint(std::string_view bytes,
                                           const std::string& origin) {
  if (bytes.empty()) {
    return WithReason(
        absl::DataLossError(StrCat("the checkpoint ", origin, " is empty")),
        kUnreadable);
  }
  absl::StatusOr<Checkpoint> read = CatchTorch(
      "reading a checkpoint", [&] { return FromBytes(bytes, origin); });
  if (read.ok() || absl::IsResourceExhausted(read.status())) return read;
  const std::string why(read.status().message());
  return WithReason(
      absl::DataLossError(StrCat("the checkpoint cannot be read: ",
                                 why.substr(0, why.find('\n')))),
      kUnreadable);
}

absl::Status CheckSameIdentity(
    const std::map<std::string, std::string>& saved,
    const std::map<std::string, std::string>& wanted) {
  for (const auto& [key, value] : wanted) {
    const auto found = saved.find(key);
    const std::string other = found == saved.end() ? "" : found->second;
    if (other == value) continue;
    const std::string limit =
        StrCat("the checkpoint was made with ", Shown(other));
    const std::string field = IdentityField(key);
    if (field.empty()) {
      return WithReason(absl::FailedPreconditionError(
                            StrCat(key, " ", Shown(value), ": ", limit)),
                        Reason{"other_run"});
    }
    return FieldStatus(absl::StatusCode::kFailedPrecondition,
                       {.field = field, .value = Shown(value), .limit = limit},
                       field == "batch_size" ? Reason{"other_batch_size"}
                                             : Reason{"other_run"});
  }
  return absl::OkStatus();
}

}  // namespace millrace
