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
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/file/npy.h"
#include "common/graph/edge_split_writer.h"
#include "common/graph/store.h"
#include "common/ingest/edges_by_id.h"
#include "common/ingest/split_import.h"
#include "common/table/npy_rows.h"
#include "common/table/npy_tensor.h"
#include "common/table/tensor_rows.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<TypeIndex> ChooseType(const Schema& schema,
                                     const std::string& name) {
  if (!name.empty()) return schema.FindType(name);
  if (schema.node_types.size() == 1) return 0;
  return InvalidField({.problem = FieldError::Problem::kMissing,
                       .field = "type",
                       .limit = "this graph has several node types"});
}

// The id of the node with an original id, which must be in range. If the result
// is out of range, the lookup table is damaged.
uint64_t IdOf(const Store& store, TypeIndex type, int64_t original) {
  const PartitionBook& book = store.book(type);
  const auto number = static_cast<uint64_t>(original);
  const int part = static_cast<int>(number / book.lookup_width());
  const Array& lookup = store.partition(part)->nodes[type].lookup;
  return static_cast<uint64_t>(
      lookup.IntegerAt(static_cast<int64_t>(number % book.lookup_width())));
}

absl::StatusOr<std::vector<uint64_t>> ToIds(
    const Store& store, TypeIndex type, const std::vector<int64_t>& originals) {
  const uint64_t count = store.book(type).node_count();
  std::vector<uint64_t> ids;
  ids.reserve(originals.size());
  for (int64_t original : originals) {
    const uint64_t id = IdOf(store, type, original);
    if (id >= count) {
      return absl::DataLossError(
          StrCat(store.path().string(), ": the lookup table of node type ",
                 store.schema().node_types[type].name, " has id ", id,
                 " for original id ", original, ", beyond the type's ", count,
                 " nodes"));
    }
    ids.push_back(id);
  }
  return ids;
}

// Makes an empty folder for the split's files. store.json does not list it, so
// anything in it was left by an interrupted run.
absl::StatusOr<fs::path> MakeSplitFolder(const fs::path& store,
                                         const std::string& file) {
  const fs::path folder = store / fs::path(file).parent_path();
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder, error);
  if (error) return FileError("create", folder, error.value());
  return folder;
}

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
  SplitInfo info{type, name, static_cast<int64_t>(ids.size()), {}, {}};
  info.part_counts.assign(static_cast<size_t>(store.partition_count()), 0);
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
  return WriteColumn(store.path(), SplitPath(nodes.name, name, "original_id"),
                     Array::Adopt(std::move(originals)), manifest);
}

// Sets the fingerprint of a new split, whose files have been written.
template <typename Split>
void SetIdentity(const Manifest& manifest, Split& split) {
  split.identity.fingerprint = ComputeSplitFingerprints(
      manifest.files)[SplitFolder(manifest.schema, split)];
}

absl::Status ReplaceManifest(const fs::path& root, const Manifest& manifest) {
  MILLRACE_RETURN_IF_ERROR(
      ReplaceFile(root / "store.json", root / "store.json.new",
                  [&manifest](const fs::path& temporary) {
                    std::error_code error;
                    fs::remove(temporary, error);  // left by an interrupted run
                    return WriteNewFile(temporary, FormatManifest(manifest));
                  }));
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
    return absl::AlreadyExistsError(StrCat(
        path.string(), ": node type ", nodes.name, " already has a split \"",
        split.name, "\"\nchoose another name"));
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> rows,
                            OpenNpyIds(split.ids, nodes.count));
  MILLRACE_ASSIGN_OR_RETURN(
      std::vector<int64_t> originals,
      ReadSplitIds(*rows, {.name = nodes.name, .count = nodes.count}));
  MILLRACE_ASSIGN_OR_RETURN(
      const fs::path folder,
      MakeSplitFolder(path, SplitPath(nodes.name, split.name, "id")));
  std::error_code error;
  Manifest manifest = store->manifest();
  absl::Status written =
      WriteColumns(*store, type, split.name, std::move(originals), manifest);
  if (written.ok()) written = SyncPath(folder.parent_path());
  if (!written.ok()) {
    fs::remove_all(folder, error);
    return written;
  }
  SetIdentity(manifest, manifest.splits.back());
  // If this fails, the folder does no harm: store.json does not list it.
  MILLRACE_RETURN_IF_ERROR(ReplaceManifest(path, manifest));
  return manifest.splits.back();
}

namespace {

absl::StatusOr<RelationIndex> ChooseRelation(const Schema& schema,
                                             const std::string& name) {
  if (!name.empty()) return schema.FindRelation(name);
  if (schema.relations.size() == 1) return 0;
  return InvalidField({.problem = FieldError::Problem::kMissing,
                       .field = "type",
                       .limit = "this graph has several relations"});
}

// Reads integers as int64, [n] or [n, width].
absl::StatusOr<Array> ReadIntegers(const fs::path& path, bool matrix) {
  MILLRACE_ASSIGN_OR_RETURN(Array array, ReadNpyIntegers(path));
  if (array.shape().size() == (matrix ? 2 : 1)) return array;
  return absl::InvalidArgumentError(
      StrCat(path.string(), " has ", array.shape().size(),
             array.shape().size() == 1 ? " dimension" : " dimensions",
             "; it must have ", matrix ? 2 : 1));
}

// Reads labels as they are, or as int64 if stores do not support their dtype.
absl::StatusOr<Array> ReadLabels(const fs::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor tensor, MapNpyTensor(path));
  const ElementType type = tensor.format.type;
  const bool widened =
      RequireIntegers(path.string(), type).ok() &&
      (tensor.format.big_endian || type == ElementType::kBool ||
       DTypeOf(type) == DType::kNone);
  if (!widened) return MapNpy(path);
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> rows,
                            TensorRows(path.string(), tensor));
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> labels, ReadIntegers(*rows));
  return Array::Adopt(std::move(labels), tensor.sizes);
}

absl::StatusOr<EdgeSplitColumns> ReadPairs(const NewEdgeSplit& split) {
  EdgeSplitColumns columns;
  MILLRACE_ASSIGN_OR_RETURN(const Array pairs, ReadIntegers(split.pairs, true));
  if (pairs.shape()[1] != 2) {
    return absl::InvalidArgumentError(
        StrCat(split.pairs.string(), " has ", pairs.shape()[1],
               " columns; give (source, destination)"));
  }
  std::vector<int64_t> src, dst;
  for (int64_t i = 0; i < pairs.rows(); ++i) {
    src.push_back(pairs.IntegerAt(2 * i));
    dst.push_back(pairs.IntegerAt(2 * i + 1));
  }
  columns.src = Array::Adopt(std::move(src));
  columns.dst = Array::Adopt(std::move(dst));
  if (!split.times.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(columns.time, ReadIntegers(split.times, false));
  }
  if (!split.edge_types.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(const Array types,
                              ReadIntegers(split.edge_types, false));
    const auto values = types.As<int64_t>();
    columns.edge_type =
        Array::Adopt(std::vector<int32_t>(values.begin(), values.end()));
  }
  if (!split.labels.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(columns.label, ReadLabels(split.labels));
  }
  if (!split.negatives.empty()) {
    MILLRACE_ASSIGN_OR_RETURN(columns.negative,
                              ReadIntegers(split.negatives, true));
  }
  return columns;
}

absl::StatusOr<EdgeSplitColumns> ReadEdges(const Store& store,
                                           RelationIndex relation,
                                           const NewEdgeSplit& split) {
  if (split.all) return EdgesById(store, relation, std::nullopt);
  if (!split.pairs.empty()) return ReadPairs(split);
  MILLRACE_ASSIGN_OR_RETURN(const Array ids,
                            ReadIntegers(split.edge_ids, false));
  const auto values = ids.As<int64_t>();
  return EdgesById(store, relation,
                   std::vector<int64_t>(values.begin(), values.end()));
}

}  // namespace

absl::StatusOr<EdgeSplitInfo> AddEdgeSplit(const fs::path& path,
                                           const NewEdgeSplit& split) {
  MILLRACE_RETURN_IF_ERROR(CheckSplitName(split.name));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store,
                            Store::Open(path));
  MILLRACE_ASSIGN_OR_RETURN(const RelationIndex relation,
                            ChooseRelation(store->schema(), split.relation));
  const std::string name = store->schema().RelationName(relation);
  if (store->manifest().FindEdgeSplit(relation, split.name).ok()) {
    return absl::AlreadyExistsError(
        StrCat(path.string(), ": ", name, " already has a split \"", split.name,
               "\"\nchoose another name"));
  }
  MILLRACE_ASSIGN_OR_RETURN(EdgeSplitColumns columns,
                            ReadEdges(*store, relation, split));
  columns.relation = relation;
  columns.name = split.name;
  MILLRACE_ASSIGN_OR_RETURN(
      const fs::path folder,
      MakeSplitFolder(path, SplitPath(name, split.name, "src")));
  Manifest manifest = store->manifest();
  absl::StatusOr<EdgeSplitInfo> info = WriteEdgeSplit(
      columns, manifest.schema, manifest.books,
      [&](TypeIndex type, int64_t original) {
        return IdOf(*store, type, original);
      },
      [&](const std::string& file, const Array& array) {
        return WriteColumn(path, file, array, manifest);
      });
  absl::Status written = info.status();
  if (written.ok()) written = SyncPath(folder.parent_path());
  if (!written.ok()) {
    std::error_code error;
    fs::remove_all(folder, error);
    return written;
  }
  SetIdentity(manifest, *info);
  manifest.edge_splits.push_back(*info);
  MILLRACE_RETURN_IF_ERROR(ReplaceManifest(path, manifest));
  return *info;
}

}  // namespace millrace
