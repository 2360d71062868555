// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/add_split.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/array.h"
#include "common/base/file.h"
#include "common/base/npy.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/store.h"
#include "common/ingest/npy_rows.h"
#include "common/ingest/split_import.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<TypeIndex> ChooseType(const Schema& schema,
                                     const std::string& name) {
  if (!name.empty()) return schema.FindType(name);
  if (schema.node_types.size() == 1) return 0;
  return absl::InvalidArgumentError(
      "--type is needed, because this graph has several node types");
}

// The ids that partitioning gave to original ids; 0 <= original_id < count.
absl::StatusOr<std::vector<uint64_t>> ToIds(
    const Store& store, TypeIndex type, const std::vector<int64_t>& originals) {
  const PartitionBook& book = store.book(type);
  std::vector<uint64_t> ids;
  ids.reserve(originals.size());
  for (int64_t original : originals) {
    const auto number = static_cast<uint64_t>(original);
    const int part = static_cast<int>(number / book.lookup_width());
    const Array& lookup = store.partition(part)->nodes[type].lookup;
    const auto row = static_cast<int64_t>(number % book.lookup_width());
    const auto id = static_cast<uint64_t>(lookup.IntegerAt(row));
    if (id >= book.node_count()) {
      return absl::DataLossError(
          StrCat((store.path() /
                  LookupPath(part, store.schema().node_types[type].name))
                     .string(),
                 ": id ", id, " at row ", row, " is beyond the type's ",
                 book.node_count(), " nodes"));
    }
    ids.push_back(id);
  }
  return ids;
}

// The node times of `ids`.
Array TimesOf(const Store& store, TypeIndex type,
              const std::vector<uint64_t>& ids) {
  const PartitionBook& book = store.book(type);
  std::vector<int64_t> times;
  times.reserve(ids.size());
  for (const uint64_t id : ids) {
    const int owner = book.Owner(id);
    times.push_back(store.partition(owner)
                        ->nodes[type]
                        .time.As<int64_t>()[id - book.begin(owner)]);
  }
  return Array::Adopt(std::move(times));
}

// Writes one column of the split and adds it to the manifest's files.
absl::Status WriteColumn(const fs::path& root, const std::string& path,
                         const Array& values, Manifest& manifest) {
  MILLRACE_ASSIGN_OR_RETURN(const NpyWriter::Summary file,
                            WriteNpy(root / path, values));
  manifest.files.push_back({path, file.file_bytes, file.xxh3});
  return SyncPath((root / path).parent_path());
}

absl::Status WriteColumns(const Store& store, TypeIndex type,
                          const std::string& name,
                          std::vector<int64_t> originals, Manifest& manifest) {
  const NodeType& nodes = store.schema().node_types[type];
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint64_t> ids,
                            ToIds(store, type, originals));
  SplitInfo info{type, name, static_cast<int64_t>(ids.size()), {}};
  info.part_counts.assign(static_cast<size_t>(store.parts()), 0);
  for (uint64_t id : ids) ++info.part_counts[store.book(type).Owner(id)];
  manifest.splits.push_back(std::move(info));
  const Array narrow =
      nodes.id_dtype() == DType::kUint32
          ? Array::Adopt(std::vector<uint32_t>(ids.begin(), ids.end()))
          : Array::Adopt(ids);
  MILLRACE_RETURN_IF_ERROR(WriteColumn(
      store.path(), SplitPath(nodes.name, name, "id"), narrow, manifest));
  if (nodes.has_time) {
    MILLRACE_RETURN_IF_ERROR(WriteColumn(store.path(),
                                         SplitPath(nodes.name, name, "time"),
                                         TimesOf(store, type, ids), manifest));
  }
  MILLRACE_RETURN_IF_ERROR(
      WriteColumn(store.path(), SplitPath(nodes.name, name, "original_id"),
                  Array::Adopt(std::move(originals)), manifest));
  // Original ids are the same in all partitionings.
  manifest.dataset_fingerprint = ChangedFingerprint(
      manifest.dataset_fingerprint,
      StrCat("split ", nodes.name, " ", name, " ", manifest.files.back().xxh3));
  return absl::OkStatus();
}

// Replaces store.json by one rename.
absl::Status ReplaceManifest(const fs::path& root, Manifest& manifest) {
  manifest.fingerprint = ComputeFingerprint(manifest.files);
  const fs::path temporary = root / "store.json.new";
  std::error_code error;
  fs::remove(temporary, error);  // of an interrupted run
  MILLRACE_RETURN_IF_ERROR(WriteNewFile(temporary, FormatManifest(manifest)));
  fs::rename(temporary, root / "store.json", error);
  if (error) return FileError("replace", root / "store.json", error.value());
  return SyncPath(root);
}

}  // namespace

absl::StatusOr<SplitInfo> AddSplit(const fs::path& path,
                                   const NewSplit& split) {
  MILLRACE_RETURN_IF_ERROR(CheckSplitName(split.name));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                            Store::Open(path));
  MILLRACE_ASSIGN_OR_RETURN(const TypeIndex type,
                            ChooseType(store->schema(), split.type));
  const NodeType& nodes = store->schema().node_types[type];
  if (store->FindSplit(type, split.name).ok()) {
    return absl::AlreadyExistsError(
        StrCat(path.string(), ": node type ", nodes.name, " has a split \"",
               split.name, "\" already\nchoose another --name"));
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> rows,
                            OpenNpyIds(split.ids, nodes.count));
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> originals,
                            ReadSplitIds(*rows, nodes.count, nodes.name));
  // store.json does not know the folder: an interrupted run left it.
  const fs::path folder =
      path / fs::path(SplitPath(nodes.name, split.name, "id")).parent_path();
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) return FileError("create", folder, error.value());
  Manifest manifest = store->manifest();
  absl::Status written =
      WriteColumns(*store, type, split.name, std::move(originals), manifest);
  if (written.ok()) written = SyncPath(folder.parent_path());
  if (!written.ok()) {
    fs::remove_all(folder, error);
    return written;
  }
  // From here on a folder that store.json does not know does no harm.
  MILLRACE_RETURN_IF_ERROR(ReplaceManifest(path, manifest));
  return manifest.splits.back();
}

}  // namespace millrace
