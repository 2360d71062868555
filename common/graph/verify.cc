// SPDX-License-Identifier: Apache-2.0
#include "common/graph/verify.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "common/base/file.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/verify_content.h"

namespace millrace {
namespace fs = std::filesystem;
namespace {

// Whether a file belongs to a mapped partition or to no partition.
bool IsMappedFile(const Store& store, std::string_view path) {
  if (!path.starts_with("part-")) return true;
  for (const int part : store.partitions()) {
    if (path.starts_with(StrCat(PartName(part), "/"))) return true;
  }
  return false;
}

absl::Status VerifyFile(const fs::path& file, const FileInfo& info) {
  uint64_t bytes = 0;
  absl::StatusOr<UniqueFd> fd = OpenForReading(file, &bytes);
  if (absl::IsNotFound(fd.status())) {
    return absl::DataLossError(fd.status().message());
  }
  MILLRACE_RETURN_IF_ERROR(fd.status());
  if (bytes != info.bytes) {
    return absl::DataLossError(StrCat(file.native(), " has ", bytes,
                                      " bytes, but store.json says ",
                                      info.bytes));
  }
  MILLRACE_ASSIGN_OR_RETURN(const uint64_t xxh3, HashFile(fd->get(), file));
  if (xxh3 == info.xxh3) return absl::OkStatus();
  return absl::DataLossError(StrCat(
      file.native(), " has the checksum ", absl::Hex(xxh3, absl::kZeroPad16),
      ", but store.json says ", absl::Hex(info.xxh3, absl::kZeroPad16)));
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

// Checks what can be known about the names in store.json. Two things must be
// believed: from which dataset a partitioned store was made, and the number
// that the uuid is.
absl::Status VerifyNames(const Store& store) {
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
  // Where an earlier version added splits, the fingerprint changed with each.
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
    MILLRACE_RETURN_IF_ERROR(VerifyFile(store.path() / file.path, file));
    progress.Add(static_cast<int64_t>(file.bytes));
  }
  return absl::OkStatus();
}

absl::Status VerifyStore(const fs::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                            Store::Open(path));
  MILLRACE_RETURN_IF_ERROR(VerifyNames(*store));
  MILLRACE_RETURN_IF_ERROR(VerifyNoOthers(*store));
  MILLRACE_RETURN_IF_ERROR(VerifyFiles(*store));
  return VerifyContent(*store);
}

}  // namespace millrace
