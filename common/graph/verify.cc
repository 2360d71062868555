// SPDX-License-Identifier: Apache-2.0
#include "common/graph/verify.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/base/check.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/file/uncached_reader.h"
#include "common/graph/damaged_file.h"
#include "common/graph/verify_content.h"

namespace millrace {
namespace fs = std::filesystem;
namespace {

// Number of bytes of a loaded file that are hashed at a time.
constexpr size_t kPieceBytes = 1 << 20;

absl::Status CheckBytes(const Store& store, const FileInfo& file,
                        uint64_t bytes) {
  if (bytes == file.bytes) return absl::OkStatus();
  return DamagedFile(
      store, file.path,
      StrCat("has ", bytes, " bytes, but store.json says ", file.bytes));
}

// The checksum of data that is read in pieces, at the rate that `pace` allows.
class PacedHash {
 public:
  explicit PacedHash(const std::function<bool(size_t bytes)>& pace)
      : pace_(pace), state_(XXH3_createState(), XXH3_freeState) {
    XXH3_64bits_reset(state_.get());
  }

  // CANCELLED: `pace` returned false.
  absl::Status Add(std::span<const std::byte> piece) {
    XXH3_64bits_update(state_.get(), piece.data(), piece.size());
    bytes_ += piece.size();
    return pace_(piece.size()) ? absl::OkStatus()
                               : absl::CancelledError("scrubbing was stopped");
  }
  uint64_t Digest() const { return XXH3_64bits_digest(state_.get()); }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::function<bool(size_t bytes)>& pace_;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
  uint64_t bytes_ = 0;
};

absl::Status CheckChecksum(const Store& store, const FileInfo& file,
                           uint64_t xxh3) {
  if (xxh3 == file.xxh3) return absl::OkStatus();
  return DamagedFile(
      store, file.path,
      absl::StrCat("has the checksum ", absl::Hex(xxh3, absl::kZeroPad16),
                   ", but store.json says ",
                   absl::Hex(file.xxh3, absl::kZeroPad16)));
}

// A missing file is damage to the store.
absl::Status AsDamage(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::DataLossError(status.message())
                                  : status;
}

absl::Status VerifyFile(const Store& store, const FileInfo& info) {
  const fs::path file = store.path() / info.path;
  uint64_t bytes = 0;
  absl::StatusOr<UniqueFd> fd = OpenForReading(file, &bytes);
  MILLRACE_RETURN_IF_ERROR(AsDamage(fd.status()));
  MILLRACE_RETURN_IF_ERROR(CheckBytes(store, info, bytes));
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t xxh3, HashFile(fd->get(), file));
  return CheckChecksum(store, info, xxh3);
}

absl::Status VerifyNoOthers(const Store& store) {
  std::set<std::string_view> listed = {"store.json"};
  for (const FileInfo& file : store.manifest().files) listed.insert(file.path);
  std::error_code error;
  fs::recursive_directory_iterator entry(store.path(), error);
  for (; !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    if (entry->is_directory(error)) continue;
    const std::string path =
        entry->path().lexically_relative(store.path()).generic_string();
    if (!listed.contains(path)) {
      return absl::DataLossError(
          StrCat(entry->path().native(), " is not listed in store.json"));
    }
  }
  if (error) return FileError("list", store.path(), error.value());
  return absl::OkStatus();
}

// Checks the uuid and the dataset's fingerprint in store.json as far as
// possible. The value of the uuid, and the dataset fingerprint of a partitioned
// store, cannot be checked.
absl::Status VerifyIdentity(const Store& store) {
  const Manifest& manifest = store.manifest();
  const auto bad = [&](std::string_view what) {
    return absl::DataLossError(
        StrCat((store.path() / "store.json").native(), ": ", what));
  };
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  const bool is_uuid = std::equal(
      manifest.uuid.begin(), manifest.uuid.end(), kForm.begin(), kForm.end(),
      [](char c, char form) {
        return form == 'x' ? absl::ascii_isxdigit(static_cast<unsigned char>(c))
                           : c == form;
      });
  if (!is_uuid) return bad("'uuid' does not have the form of a UUID");
  const auto within = [](const auto& split) {
    return split.identity.within_store;
  };
  // In stores to which an earlier version added splits, the fingerprint changed
  // with each of them.
  const bool old =
      std::any_of(manifest.splits.begin(), manifest.splits.end(), within) ||
      std::any_of(manifest.edge_splits.begin(), manifest.edge_splits.end(),
                  within);
  if (!manifest.is_dataset() || old ||
      manifest.dataset_fingerprint == manifest.fingerprint) {
    return absl::OkStatus();
  }
  return bad("'dataset_fingerprint' of a dataset is not its fingerprint");
}

absl::Status VerifyContent(const Store& store) {
  const Manifest& manifest = store.manifest();
  const size_t types = manifest.schema.node_types.size();
  const size_t relations = manifest.schema.relations.size();
  Progress progress(
      "content",
      static_cast<int64_t>(types + manifest.splits.size() +
                           manifest.edge_splits.size() + relations),
      "steps");
  for (size_t i = 0; i < types; ++i) {
    MILLRACE_RETURN_IF_ERROR(VerifyNodes(store, static_cast<TypeIndex>(i)));
    progress.Add(1);
  }
  for (const SplitInfo& split : manifest.splits) {
    MILLRACE_RETURN_IF_ERROR(VerifySplit(store, split));
    progress.Add(1);
  }
  for (size_t i = 0; i < manifest.edge_splits.size(); ++i) {
    MILLRACE_RETURN_IF_ERROR(VerifyEdgeSplit(store, i));
    progress.Add(1);
  }
  for (size_t i = 0; i < relations; ++i) {
    MILLRACE_RETURN_IF_ERROR(
        VerifyRelation(store, static_cast<RelationIndex>(i)));
    progress.Add(1);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsMappedFile(const Store& store, std::string_view path) {
  const std::optional<int> part = PartitionOfFile(path);
  if (!part.has_value()) return true;
  const std::vector<int>& mapped = store.mapped_partitions();
  return std::binary_search(mapped.begin(), mapped.end(), *part);
}

absl::Status ScrubFile(const Store& store, const FileInfo& file,
                       const std::function<bool(size_t bytes)>& pace) {
  absl::StatusOr<UncachedReader> reader =
      UncachedReader::Open(store.path() / file.path);
  MILLRACE_RETURN_IF_ERROR(AsDamage(reader.status()));
  MILLRACE_RETURN_IF_ERROR(CheckBytes(store, file, reader->file_bytes()));
  PacedHash hash(pace);
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(const std::span<const std::byte> piece,
                              reader->Next());
    if (piece.empty()) break;
    MILLRACE_RETURN_IF_ERROR(hash.Add(piece));
  }
  MILLRACE_RETURN_IF_ERROR(CheckBytes(store, file, hash.bytes()));
  return CheckChecksum(store, file, hash.Digest());
}

absl::Status ScrubLoadedFile(const Store& store, const FileInfo& file,
                             const std::function<bool(size_t bytes)>& pace) {
  const Store::LoadedFile* const loaded = store.FindLoaded(file.path);
  MILLRACE_CHECK(loaded != nullptr);
  PacedHash hash(pace);
  MILLRACE_RETURN_IF_ERROR(hash.Add(std::as_bytes(std::span(loaded->header))));
  std::span<const std::byte> left(loaded->data.data(),
                                  loaded->data.total_bytes());
  while (!left.empty()) {
    const size_t bytes = std::min(left.size(), kPieceBytes);
    MILLRACE_RETURN_IF_ERROR(hash.Add(left.first(bytes)));
    left = left.subspan(bytes);
  }
  if (hash.Digest() == file.xxh3) return absl::OkStatus();
  return DamagedFile(store, file.path,
                     "differs in memory from its checksum in store.json");
}

absl::Status VerifyFiles(const Store& store) {
  int64_t total = 0;
  for (const FileInfo& file : store.manifest().files) {
    if (IsMappedFile(store, file.path)) {
      total += static_cast<int64_t>(file.bytes);
    }
  }
  Progress progress("checksums", total, "bytes");
  for (const FileInfo& file : store.manifest().files) {
    if (!IsMappedFile(store, file.path)) continue;
    MILLRACE_RETURN_IF_ERROR(VerifyFile(store, file));
    progress.Add(static_cast<int64_t>(file.bytes));
  }
  return absl::OkStatus();
}

absl::Status VerifyStore(const fs::path& path, std::vector<int> partitions) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                            Store::Open(path, std::move(partitions)));
  MILLRACE_RETURN_IF_ERROR(VerifyIdentity(*store));
  MILLRACE_RETURN_IF_ERROR(VerifyNoOthers(*store));
  MILLRACE_RETURN_IF_ERROR(VerifyFiles(*store));
  return VerifyContent(*store);
}

}  // namespace millrace
