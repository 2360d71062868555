// SPDX-License-Identifier: Apache-2.0
#include "client/train/checkpoint.h"

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <caffe2/serialize/inline_container.h>
#include <fcntl.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>

#include "client/tensor/torch_status.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/zip_archive.h"

namespace millrace {
namespace {

constexpr char kFormat[] = "millrace checkpoint";
constexpr int64_t kVersion = 1;

// Takes the next bytes of a file.
using Sink = std::function<absl::Status(const void* data, size_t size)>;

// torch.load's safe mode reads plain dictionaries of these.
c10::impl::GenericDict NewDict() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

// A file holds whole storages: a view must not bring the rest of its own.
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

// The file format of torch.save, piece by piece into `sink`. Not LibTorch's
// pickle_save: that marks each dictionary with its TorchScript type by a global
// that torch.load's safe mode, the default since 2.6, refuses.
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
        // Told of a failure, the writer throws in its destructor: after the
        // first one it goes on for nothing.
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

// Doubles are scalar tensors: old versions of the safe mode know no floats.
c10::IValue FromDoubles(const std::map<std::string, double>& map) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, value] : map) {
    tensors.push_back({name, at::full({}, value, at::kDouble)});
  }
  return FromTensors(tensors);
}

std::map<std::string, double> ToDoubles(const std::vector<NamedTensor>& from) {
  std::map<std::string, double> map;
  for (const NamedTensor& named : from) {
    map[named.name] = named.tensor.item().toDouble();
  }
  return map;
}

std::vector<NamedTensor> ToTensors(const c10::IValue& value) {
  std::vector<NamedTensor> tensors;
  for (const auto& entry : value.toGenericDict()) {
    tensors.push_back({entry.key().toStringRef(), entry.value().toTensor()});
  }
  return tensors;
}

template <typename Value>
std::map<std::string, Value> ToMap(const c10::IValue& value) {
  std::map<std::string, Value> map;
  for (const auto& entry : value.toGenericDict()) {
    map[entry.key().toStringRef()] = entry.value().to<Value>();
  }
  return map;
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

// The bytes into a file that is on the disk on return.
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

constexpr char kUnreadAdvice[] =
    "put a good copy of it there, remove it to start from the beginning, or "
    "name another --checkpoint folder";

// LibTorch reads over wrong checksums, and so would train on from damaged
// weights.
absl::Status CheckUndamaged(const std::vector<char>& bytes,
                            const std::string& origin) {
  if (bytes.empty()) {
    return absl::DataLossError(
        StrCat("the checkpoint ", origin, " is empty\n", kUnreadAdvice));
  }
  const auto archive = ZipArchive::Of(origin, {bytes.data(), bytes.size()});
  const absl::Status sound =
      archive.ok() ? CheckEntries(*archive) : archive.status();
  if (sound.ok()) return sound;
  const std::string why(sound.message());
  return absl::DataLossError(
      StrCat("the checkpoint is damaged: ", why.substr(0, why.find('\n')), "\n",
             kUnreadAdvice));
}

std::string Shown(const std::string& value) {
  return value.empty() ? "none" : value;
}

}  // namespace

absl::StatusOr<std::vector<char>> SerializeCheckpoint(
    const Checkpoint& checkpoint) {
  std::vector<char> bytes;
  MILLRACE_RETURN_IF_ERROR(
      Serialize(checkpoint, [&bytes](const void* data, size_t size) {
        const char* more = static_cast<const char*>(data);
        bytes.insert(bytes.end(), more, more + size);
        return absl::OkStatus();
      }));
  return bytes;
}

std::filesystem::path TemporaryOf(const std::filesystem::path& path) {
  return path.string() + ".tmp";
}

absl::Status WriteCheckpoint(const std::filesystem::path& path,
                             const Checkpoint& checkpoint) {
  const std::filesystem::path temporary = TemporaryOf(path);
  absl::Status written = WriteWhole(temporary, checkpoint);
  std::error_code error;
  if (written.ok()) {
    std::filesystem::rename(temporary, path, error);
    if (error) written = FileError("rename to", path, error.value());
  }
  if (!written.ok()) {
    std::filesystem::remove(temporary, error);
    return absl::Status(
        written.code(),
        StrCat("the checkpoint ", path.string(),
               " is not written: ", written.message(),
               "\nmake room or mend the disk and start again with --resume; "
               "the checkpoint that was there before is whole"));
  }
  return SyncPath(path.parent_path().empty() ? "." : path.parent_path());
}

absl::StatusOr<Checkpoint> ParseCheckpoint(const std::vector<char>& bytes,
                                           const std::string& origin) {
  MILLRACE_RETURN_IF_ERROR(CheckUndamaged(bytes, origin));
  absl::StatusOr<Checkpoint> parsed =
      CatchTorch("reading a checkpoint", [&]() -> absl::StatusOr<Checkpoint> {
        const c10::impl::GenericDict dict =
            torch::jit::pickle_load(bytes).toGenericDict();
        if (dict.at("format").toStringRef() != kFormat ||
            dict.at("version").toInt() != kVersion) {
          return absl::InvalidArgumentError("another format or version");
        }
        Checkpoint checkpoint;
        checkpoint.model = ToTensors(dict.at("model"));
        checkpoint.optimizer = ToTensors(dict.at("optimizer"));
        if (dict.contains("ranks")) {  // not in files of old
          checkpoint.ranks = ToTensors(dict.at("ranks"));
        }
        checkpoint.identity = ToMap<std::string>(dict.at("identity"));
        checkpoint.counters = ToMap<int64_t>(dict.at("counters"));
        checkpoint.values = ToDoubles(ToTensors(dict.at("values")));
        return checkpoint;
      });
  if (parsed.ok()) return parsed;
  const std::string why(parsed.status().message());
  return absl::DataLossError(
      StrCat(origin, " is no checkpoint of this version (",
             why.substr(0, why.find('\n')), ")\n", kUnreadAdvice));
}

absl::Status CheckSameIdentity(
    const std::map<std::string, std::string>& saved,
    const std::map<std::string, std::string>& wanted) {
  for (const auto& [name, value] : wanted) {
    const auto found = saved.find(name);
    const std::string other = found == saved.end() ? "" : found->second;
    if (other == value) continue;
    return absl::FailedPreconditionError(
        StrCat("the checkpoint was made with ", name, " = ", Shown(other),
               ", but this run has ", name, " = ", Shown(value),
               name == "--batch-size" ? " (--global-batch-size is divided by "
                                        "the number of trainers)"
                                      : "",
               "\nuse the same job, dataset and model, or another --checkpoint "
               "folder"));
  }
  return absl::OkStatus();
}

}  // namespace millrace
