// SPDX-License-Identifier: Apache-2.0
#include "common/graph/store.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/file/file.h"
#include "common/file/npy.h"
#include "common/graph/damaged_file.h"
#include "common/graph/partitions_on_host.h"

namespace millrace {
namespace {

// Far more than any real manifest needs (65,536 partitions of a large schema).
constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 30;

// The array that a file must hold. A negative first dimension allows any size.
struct Expected {
  DType dtype;
  std::vector<int64_t> shape;
};

Expected Column(const ColumnSpec& column, int64_t rows) {
  return {column.dtype, column.ShapeOf(rows)};
}

bool Fits(const Array& array, const Expected& expected) {
  return array.dtype() == expected.dtype &&
         array.shape().size() == expected.shape.size() &&
         std::equal(array.shape().begin() + 1, array.shape().end(),
                    expected.shape.begin() + 1) &&
         (expected.shape[0] < 0 || array.shape()[0] == expected.shape[0]);
}

// Maps the files of one store, checking each against store.json.
class StoreMapper {
 public:
  StoreMapper(const std::filesystem::path& root, const Manifest& manifest)
      : root_(root), manifest_(manifest) {
    for (const FileInfo& file : manifest.files) files_[file.path] = file.bytes;
  }

  absl::StatusOr<std::unique_ptr<Partition>> MapPartition(int part) const {
    auto partition = std::make_unique<Partition>();
    const Schema& schema = manifest_.schema;
    for (size_t i = 0; i < schema.node_types.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(
          partition->nodes.emplace_back(),
          MapNodes(part, schema.node_types[i], manifest_.books[i]));
    }
    for (size_t i = 0; i < schema.relations.size(); ++i) {
      MILLRACE_ASSIGN_OR_RETURN(partition->edges.emplace_back(),
                                MapEdges(part, static_cast<RelationIndex>(i)));
    }
    return partition;
  }

  absl::StatusOr<Split> MapSplit(const SplitInfo& info) const {
    const NodeType& type = manifest_.schema.node_types[info.type];
    const auto path = [&](std::string_view column) {
      return SplitPath(type.name, info.name, column);
    };
    Split split;
    MILLRACE_ASSIGN_OR_RETURN(split.id,
                              Map(path("id"), {type.id_dtype(), {info.count}}));
    MILLRACE_ASSIGN_OR_RETURN(
        split.original_id,
        Map(path("original_id"), {DType::kInt64, {info.count}}));
    if (type.has_time) {
      MILLRACE_ASSIGN_OR_RETURN(
          split.time, Map(path("time"), {DType::kInt64, {info.count}}));
    }
    return split;
  }

  absl::StatusOr<EdgeSplit> MapEdgeSplit(const EdgeSplitInfo& info) const {
    const Schema& schema = manifest_.schema;
    const Relation& relation = schema.relations[info.relation];
    const DType src_dtype = schema.node_types[relation.src].id_dtype();
    const DType dst_dtype = schema.node_types[relation.dst].id_dtype();
    const std::string name = schema.RelationName(info.relation);
    EdgeSplit split;
    const auto map_if = [&](bool has, std::string_view column,
                            const Expected& expected,
                            Array& array) -> absl::Status {
      if (!has) return absl::OkStatus();
      MILLRACE_ASSIGN_OR_RETURN(
          array, Map(SplitPath(name, info.name, column), expected));
      return absl::OkStatus();
    };
    const Expected longs = {DType::kInt64, {info.count}};
    const bool given = info.negatives > 0;
    for (const absl::Status& status :
         {map_if(true, "src", {src_dtype, {info.count}}, split.src),
          map_if(true, "dst", {dst_dtype, {info.count}}, split.dst),
          map_if(true, "src_original_id", longs, split.src_original_id),
          map_if(true, "dst_original_id", longs, split.dst_original_id),
          map_if(info.has_edge_id, "edge_id", longs, split.edge_id),
          map_if(info.has_time, "time", longs, split.time),
          map_if(info.has_edge_type, "edge_type", {DType::kInt32, {info.count}},
                 split.edge_type),
          map_if(info.label.present(), "label",
                 {info.label.dtype, {info.count}}, split.label),
          map_if(given, "negative", {dst_dtype, {info.count, info.negatives}},
                 split.negative),
          map_if(given, "negative_original_id",
                 {DType::kInt64, {info.count, info.negatives}},
                 split.negative_original_id)}) {
      MILLRACE_RETURN_IF_ERROR(status);
    }
    return split;
  }

 private:
  absl::StatusOr<Array> Map(const std::string& path,
                            const Expected& expected) const {
    const std::filesystem::path file = root_ / path;
    const auto listed = files_.find(path);
    if (listed == files_.end()) {
      return absl::DataLossError(absl::StrCat((root_ / "store.json").native(),
                                              " does not list ", path));
    }
    absl::StatusOr<Array> array = MapNpy(file, expected.dtype);
    if (!array.ok()) {
      // A missing or malformed file is damage; running out of descriptors or
      // lacking permission is not.
      const bool damage = absl::IsNotFound(array.status()) ||
                          absl::IsInvalidArgument(array.status());
      return damage ? absl::DataLossError(array.status().message())
                    : array.status();
    }
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(file, error);
    if (error || bytes != listed->second) {
      return absl::DataLossError(absl::StrCat(file.native(), " has ", bytes,
                                              " bytes, but store.json says ",
                                              listed->second));
    }
    if (!Fits(*array, expected)) return Misfit(file, *array, expected);
    return array;
  }

  static absl::Status Misfit(const std::filesystem::path& file,
                             const Array& array, const Expected& expected) {
    return absl::DataLossError(absl::StrCat(
        file.native(), " holds ", std::string(DTypeName(array.dtype())), " (",
        absl::StrJoin(array.shape(), ", "), "), but store.json asks for ",
        std::string(DTypeName(expected.dtype)), " (",
        absl::StrJoin(expected.shape, ", "), ")"));
  }

  int64_t NodesOf(TypeIndex type, int part) const {
    const PartitionBook& book = manifest_.books[type];
    return static_cast<int64_t>(book.end(part) - book.begin(part));
  }

  absl::StatusOr<NodeColumns> MapNodes(int part, const NodeType& type,
                                       const PartitionBook& book) const {
    const auto rows = static_cast<int64_t>(book.end(part) - book.begin(part));
    const auto path = [&](std::string_view column) {
      return NodePath(part, type.name, column);
    };
    NodeColumns columns;
    MILLRACE_ASSIGN_OR_RETURN(
        columns.original_id,
        Map(path("original_id"), {type.id_dtype(), {rows}}));
    if (type.feature.present()) {
      MILLRACE_ASSIGN_OR_RETURN(
          columns.feature, Map(path("feature"), Column(type.feature, rows)));
    }
    if (type.label.present()) {
      MILLRACE_ASSIGN_OR_RETURN(columns.label,
                                Map(path("label"), Column(type.label, rows)));
    }
    if (type.has_time) {
      MILLRACE_ASSIGN_OR_RETURN(columns.time,
                                Map(path("time"), {DType::kInt64, {rows}}));
    }
    if (type.has_hotness) {
      MILLRACE_ASSIGN_OR_RETURN(
          columns.hotness, Map(path("hotness"), {DType::kFloat32, {rows}}));
    }
    MILLRACE_ASSIGN_OR_RETURN(columns.lookup,
                              Map(LookupPath(part, type.name),
                                  {type.id_dtype(), {LookupRows(book, part)}}));
    return columns;
  }

  // The tables of the last partitions may be shorter, or empty.
  static int64_t LookupRows(const PartitionBook& book, int part) {
    const uint64_t width = book.lookup_width();
    const uint64_t begin =
        std::min(static_cast<uint64_t>(part) * width, book.node_count());
    return static_cast<int64_t>(std::min(width, book.node_count() - begin));
  }

  absl::StatusOr<EdgeColumns> MapEdges(int part, RelationIndex index) const {
    const Relation& relation = manifest_.schema.relations[index];
    EdgeColumns columns;
    if (relation.has_in) {
      MILLRACE_ASSIGN_OR_RETURN(columns.in,
                                MapLists(part, index, Direction::kIn));
    }
    if (relation.has_out) {
      MILLRACE_ASSIGN_OR_RETURN(columns.out,
                                MapLists(part, index, Direction::kOut));
    }
    if (relation.feature.present()) {
      const int64_t rows =
          relation.has_in ? columns.in.indices.rows() : int64_t{-1};
      MILLRACE_ASSIGN_OR_RETURN(
          columns.feature,
          Map(EdgeFeaturePath(part, manifest_.schema.RelationName(index)),
              Column(relation.feature, rows)));
    }
    return columns;
  }

  absl::StatusOr<NeighborLists> MapLists(int part, RelationIndex index,
                                         Direction direction) const {
    const Relation& relation = manifest_.schema.relations[index];
    const bool in = direction == Direction::kIn;
    const TypeIndex owner = in ? relation.dst : relation.src;
    const TypeIndex neighbor = in ? relation.src : relation.dst;
    const std::string name = manifest_.schema.RelationName(index);
    const auto path = [&](std::string_view column) {
      return ListPath(part, name, direction, column);
    };
    NeighborLists lists;
    MILLRACE_ASSIGN_OR_RETURN(
        lists.indptr,
        Map(path("indptr"), {DType::kInt64, {NodesOf(owner, part) + 1}}));
    MILLRACE_ASSIGN_OR_RETURN(
        lists.indices,
        Map(path("indices"),
            {manifest_.schema.node_types[neighbor].id_dtype(), {-1}}));
    const int64_t edges = lists.indices.rows();
    MILLRACE_RETURN_IF_ERROR(
        CheckIndptr(root_ / path("indptr"), lists.indptr, edges));
    const auto map_if = [&](bool has, std::string_view column, DType dtype,
                            Array& array) -> absl::Status {
      if (!has) return absl::OkStatus();
      MILLRACE_ASSIGN_OR_RETURN(array, Map(path(column), {dtype, {edges}}));
      return absl::OkStatus();
    };
    MILLRACE_RETURN_IF_ERROR(
        map_if(true, "edge_id", DType::kInt64, lists.edge_id));
    MILLRACE_RETURN_IF_ERROR(
        map_if(relation.has_weight, "weight", DType::kFloat32, lists.weight));
    MILLRACE_RETURN_IF_ERROR(map_if(relation.has_weight, "weight_sum",
                                    DType::kUint64, lists.weight_sum));
    MILLRACE_RETURN_IF_ERROR(
        map_if(manifest_.neighbor_original_ids, "neighbor_original_id",
               lists.indices.dtype(), lists.neighbor_original_id));
    MILLRACE_RETURN_IF_ERROR(
        map_if(ListsHaveTime(manifest_.schema, index, direction), "time",
               DType::kInt64, lists.time));
    MILLRACE_RETURN_IF_ERROR(
        map_if(relation.has_type, "type", DType::kInt32, lists.type));
    MILLRACE_RETURN_IF_ERROR(map_if(!in && relation.feature.present(), "slot",
                                    DType::kInt64, lists.slot));
    return lists;
  }

  static absl::Status CheckIndptr(const std::filesystem::path& file,
                                  const Array& indptr, int64_t edges) {
    const std::span<const int64_t> values = indptr.As<int64_t>();
    if (values.front() == 0 && values.back() == edges) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat(
        file.native(), " goes from ", values.front(), " to ", values.back(),
        "; it must go from 0 to the ", edges, " edges of indices.npy"));
  }

  const std::filesystem::path& root_;
  const Manifest& manifest_;
  std::unordered_map<std::string_view, uint64_t> files_;  // path -> bytes
};

template <typename Split>
std::optional<size_t> PlaceOf(const std::vector<Split>& splits,
                              const Split& split) {
  const auto found = std::find(splits.begin(), splits.end(), split);
  if (found == splits.end()) return std::nullopt;
  return static_cast<size_t>(found - splits.begin());
}

template <typename Split>
bool HasAll(const std::vector<Split>& splits,
            const std::vector<Split>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const Split& split) {
    return PlaceOf(splits, split).has_value();
  });
}

absl::Status CheckOnlySplitsAdded(const std::filesystem::path& root,
                                  const Manifest& before, const Manifest& now) {
  const bool same_graph =
      now.uuid == before.uuid && now.fingerprint == before.fingerprint &&
      now.schema == before.schema && now.books == before.books;
  if (same_graph && HasAll(now.splits, before.splits) &&
      HasAll(now.edge_splits, before.edge_splits)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat((root / "store.json").native(), " now describes another ",
                   same_graph ? "split of a name that is in use" : "store"));
}

}  // namespace

absl::StatusOr<Manifest> ReadManifest(const std::filesystem::path& path) {
  const std::filesystem::path file = path / "store.json";
  absl::StatusOr<std::string> json = ReadFile(file, kMaxManifestBytes);
  if (absl::IsNotFound(json.status())) {
    return absl::NotFoundError(absl::StrCat(
        "no dataset or store at ", path.native(), ": there is no store.json"));
  }
  MILLRACE_RETURN_IF_ERROR(json.status());
  return ParseManifest(*json, file.native());
}

absl::StatusOr<std::unique_ptr<Store>> Store::Read(
    const std::filesystem::path& path) {
  auto store = std::unique_ptr<Store>(new Store);
  store->path_ = path;
  MILLRACE_ASSIGN_OR_RETURN(store->manifest_, ReadManifest(path));
  store->partitions_.resize(static_cast<size_t>(store->partition_count()));
  return store;
}

absl::Status Store::MapPartitions(std::vector<int> partitions) {
  const StoreMapper mapper(path_, manifest_);
  for (const int part : partitions) {
    MILLRACE_ASSIGN_OR_RETURN(partitions_[part], mapper.MapPartition(part));
  }
  mapped_ = std::move(partitions);
  return MapSplits(/*known=*/nullptr);
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(
    const std::filesystem::path& path, std::vector<int> partitions) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Read(path));
  MILLRACE_ASSIGN_OR_RETURN(
      partitions,
      ChoosePartitions(path, store->partition_count(), std::move(partitions)));
  MILLRACE_RETURN_IF_ERROR(store->MapPartitions(std::move(partitions)));
  return store;
}

absl::StatusOr<std::unique_ptr<Store>> Store::OpenOnHost(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Read(path));
  MILLRACE_RETURN_IF_ERROR(
      store->MapPartitions(PartitionsOnHost(path, store->partition_count())));
  return store;
}

absl::Status Store::MapSplits(const Store* known) {
  const StoreMapper mapper(path_, manifest_);
  for (const SplitInfo& info : manifest_.splits) {
    const std::optional<size_t> place =
        known == nullptr ? std::nullopt
                         : PlaceOf(known->manifest_.splits, info);
    if (place.has_value()) {
      splits_.push_back(known->splits_[*place]);
      members_.push_back(known->members_[*place]);
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(splits_.emplace_back(), mapper.MapSplit(info));
    members_.push_back(std::make_shared<Members>());
  }
  for (const EdgeSplitInfo& info : manifest_.edge_splits) {
    const std::optional<size_t> place =
        known == nullptr ? std::nullopt
                         : PlaceOf(known->manifest_.edge_splits, info);
    if (place.has_value()) {
      edge_splits_.push_back(known->edge_splits_[*place]);
      continue;
    }
    MILLRACE_ASSIGN_OR_RETURN(edge_splits_.emplace_back(),
                              mapper.MapEdgeSplit(info));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Store>> Store::WithNewSplits() const {
  MILLRACE_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(path_));
  MILLRACE_RETURN_IF_ERROR(CheckOnlySplitsAdded(path_, manifest_, manifest));
  if (manifest.splits.size() == manifest_.splits.size() &&
      manifest.edge_splits.size() == manifest_.edge_splits.size()) {
    return nullptr;
  }
  auto store = std::unique_ptr<Store>(new Store);
  store->path_ = path_;
  store->manifest_ = std::move(manifest);
  store->mapped_ = mapped_;
  store->partitions_ = partitions_;
  store->loaded_ = loaded_;
  store->graph_bytes_ = graph_bytes_;
  store->feature_bytes_ = feature_bytes_;
  MILLRACE_RETURN_IF_ERROR(store->MapSplits(this));
  return store;
}

absl::StatusOr<const Split*> Store::FindSplit(TypeIndex type,
                                              std::string_view name) const {
  MILLRACE_ASSIGN_OR_RETURN(const size_t index,
                            manifest_.FindSplit(type, name));
  return &splits_[index];
}

absl::StatusOr<const SplitMembers*> Store::FindMembers(
    TypeIndex type, std::string_view name) const {
  const auto& splits = manifest_.splits;
  const auto info =
      std::find_if(splits.begin(), splits.end(), [&](const SplitInfo& split) {
        return split.type == type && split.name == name;
      });
  if (info == splits.end()) return nullptr;
  const auto index = static_cast<size_t>(info - splits.begin());
  Members& members = *members_[index];
  std::call_once(members.once, [&] {
    absl::StatusOr<SplitMembers> made = MakeMembers(index);
    members.status = made.status();
    if (made.ok()) members.nodes = *std::move(made);
  });
  MILLRACE_RETURN_IF_ERROR(members.status);
  return &members.nodes;
}

absl::StatusOr<SplitMembers> Store::MakeMembers(size_t split) const {
  const SplitInfo& info = manifest_.splits[split];
  const NodeType& type = schema().node_types[info.type];
  const auto count = static_cast<uint64_t>(type.count);
  const Array& ids = splits_[split].id;
  SplitMembers members(count);
  for (int64_t i = 0; i < ids.rows(); ++i) {
    const auto id = static_cast<uint64_t>(ids.IntegerAt(i));
    if (id >= count) {
      return DamagedFile(*this, SplitPath(type.name, info.name, "id"),
                         absl::StrCat("is damaged: seed ", i, " has id ", id,
                                      ", but there are ", count, " nodes"));
    }
    members.Add(id);
  }
  return members;
}

std::string PartName(int part) { return absl::StrFormat("part-%05d", part); }

std::string NodePath(int part, std::string_view type, std::string_view column) {
  return absl::StrCat(PartName(part), "/nodes/", std::string(type), "/",
                      std::string(column), ".npy");
}

std::string ListPath(int part, std::string_view relation, Direction direction,
                     std::string_view column) {
  return absl::StrCat(PartName(part), "/edges/", std::string(relation), "/",
                      std::string(DirectionName(direction)), "/") +
         std::string(column) + ".npy";
}

std::string EdgeFeaturePath(int part, std::string_view relation) {
  return absl::StrCat(PartName(part), "/edges/", std::string(relation),
                      "/feature.npy");
}

std::string LookupPath(int part, std::string_view type) {
  return absl::StrCat(PartName(part), "/lookup/", std::string(type), ".npy");
}

std::string SplitPath(std::string_view type, std::string_view split,
                      std::string_view column) {
  return absl::StrCat("splits/", std::string(type), "/", std::string(split),
                      "/") +
         std::string(column) + ".npy";
}

}  // namespace millrace
