// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/pyg.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/graph/partition_book.h"
#include "common/graph/schema.h"
#include "common/table/combined_rows.h"
#include "common/table/tensor_rows.h"
#include "common/torchfile/torch_file.h"

namespace millrace {
namespace {

using Path = std::filesystem::path;
using SourcePtr = std::shared_ptr<const RowSource>;

constexpr uint64_t kMaxMetaBytes = 64 << 20;

struct PygMeta {
  int parts = 0;
  bool heterogeneous = false;
  std::vector<std::string> node_types;
  std::vector<std::vector<std::string>> relations;  // source, name, destination
};

absl::StatusOr<PygMeta> ReadPygMeta(const Path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string text,
                            ReadFile(path, kMaxMetaBytes));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto damaged = [&](std::string_view what) {
    return absl::InvalidArgumentError(StrCat(path.string(), ": ", what));
  };
  if (!json.is_object()) return damaged("this is not a JSON object");
  const nlohmann::json parts = json.value("num_parts", nlohmann::json());
  if (!parts.is_number_integer() || parts < 1 || parts > kMaxPartitions) {
    return damaged(
        StrCat("num_parts is ", parts.dump(), ", not 1 to ", kMaxPartitions));
  }
  PygMeta meta;
  meta.parts = parts.get<int>();
  const nlohmann::json hetero = json.value("is_hetero", nlohmann::json(false));
  meta.heterogeneous = hetero == true;
  if (!meta.heterogeneous) return meta;
  for (const nlohmann::json& type :
       json.value("node_types", nlohmann::json::array())) {
    if (!type.is_string()) return damaged("node_types are not strings");
    meta.node_types.push_back(type.get<std::string>());
  }
  for (const nlohmann::json& relation :
       json.value("edge_types", nlohmann::json::array())) {
    const bool triple = relation.is_array() && relation.size() == 3 &&
                        std::all_of(relation.begin(), relation.end(),
                                    [](const nlohmann::json& part) {
                                      return part.is_string();
                                    });
    if (!triple) return damaged("edge_types are not lists of three strings");
    meta.relations.push_back(relation.get<std::vector<std::string>>());
  }
  return meta;
}

struct Part {
  PickledFile graph;
  std::optional<PickledFile> node_feats;
  std::optional<PickledFile> edge_feats;
};

// Whether all values are the placeholders that PyG fills in for types without a
// column: NaN, or -1 for integers.
absl::StatusOr<bool> IsPlaceholder(const RowSource& source) {
  MILLRACE_ASSIGN_OR_RETURN(const bool integral, source.Integral());
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source.Open());
  const int64_t block = std::max<int64_t>(65536 / source.width(), 1);
  std::vector<float> values(static_cast<size_t>(block * source.width()));
  const auto is_placeholder = [integral](float value) {
    return integral ? value == -1 : std::isnan(value);
  };
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              reader->ReadFloats(block, values.data()));
    if (rows == 0) return true;
    const auto end = values.begin() + rows * source.width();
    if (!std::all_of(values.begin(), end, is_placeholder)) return false;
  }
}

absl::Status DropPlaceholders(std::vector<RowShare>& shares) {
  for (const RowShare& share : shares) {
    MILLRACE_ASSIGN_OR_RETURN(const bool is_placeholder,
                              IsPlaceholder(*share.values));
    if (!is_placeholder) return absl::OkStatus();
  }
  shares.clear();
  return absl::OkStatus();
}

class PygFolder {
 public:
  PygFolder(const PartitionFolderInput& input, const ImportOptions& options)
      : folder_(input, options) {}

  absl::StatusOr<RawGraph> Describe() {
    MILLRACE_ASSIGN_OR_RETURN(meta_,
                              ReadPygMeta(folder_.directory() / "META.json"));
    MILLRACE_RETURN_IF_ERROR(OpenParts());
    if (meta_.heterogeneous) {
      for (const std::string& type : meta_.node_types) {
        MILLRACE_RETURN_IF_ERROR(AddNodes(type, &type));
      }
      for (const std::vector<std::string>& relation : meta_.relations) {
        MILLRACE_RETURN_IF_ERROR(AddRelation(&relation));
      }
    } else {
      MILLRACE_RETURN_IF_ERROR(
          AddNodes(std::string(kHomogeneousType), nullptr));
      MILLRACE_RETURN_IF_ERROR(AddRelation(nullptr));
    }
    MILLRACE_RETURN_IF_ERROR(folder_.AddLabelsAndSplits());
    return std::move(folder_.graph());
  }

 private:
  using Triple = std::vector<std::string>;

  absl::Status OpenParts();
  // `type` and `relation` are null in a homogeneous graph.
  absl::Status AddNodes(const std::string& name, const std::string* type);
  absl::Status AddNodeColumns(const std::string* type, RawNodes& nodes);
  absl::Status AddRelation(const Triple* relation);
  absl::StatusOr<RawEdges> EndsOf(const Triple* relation);
  absl::StatusOr<std::vector<RowShare>> Endpoints(const Triple* relation);
  absl::Status AddEdgeColumns(const Triple* relation, int64_t count,
                              RawEdges& edges);

  // The dictionary of a file or, if `key` is not null, of a type in the file.
  // Null if it is missing.
  template <typename Key>
  static const PickleValue* Find(const std::optional<PickledFile>& file,
                                 const Key* key) {
    if (!file.has_value()) return nullptr;
    if (key == nullptr) return &file->root();
    return FindKey(file->root(), *key);
  }

  PartitionFolder folder_;
  PygMeta meta_;
  std::vector<Part> parts_;
  int64_t edge_offset_ = 0;  // edge_id of the next relation's first edge
};

absl::Status PygFolder::OpenParts() {
  for (int part = 0; part < meta_.parts; ++part) {
    const Path directory = folder_.directory() / StrCat("part_", part);
    Part& files = parts_.emplace_back();
    MILLRACE_ASSIGN_OR_RETURN(files.graph,
                              OpenTorchFile(directory / "graph.pt"));
    for (const auto& [name, file] :
         {std::pair("node_feats.pt", &files.node_feats),
          std::pair("edge_feats.pt", &files.edge_feats)}) {
      if (!FileExists(directory / name)) continue;
      MILLRACE_ASSIGN_OR_RETURN(*file, OpenTorchFile(directory / name));
    }
  }
  return absl::OkStatus();
}

absl::Status PygFolder::AddNodes(const std::string& name,
                                 const std::string* type) {
  const Path path = folder_.directory() /
                    (type == nullptr ? Path("node_map.pt")
                                     : Path("node_map") / (*type + ".pt"));
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor owners, OpenTorchTensor(path));
  MILLRACE_RETURN_IF_ERROR(folder_.AddNodes(name, std::move(owners), path));
  return AddNodeColumns(type, folder_.graph().nodes.back());
}

absl::Status PygFolder::AddNodeColumns(const std::string* type,
                                       RawNodes& nodes) {
  std::vector<RowShare> shares;
  for (const Part& part : parts_) {
    const PickleValue* dict = Find(part.node_feats, type);
    if (dict == nullptr) continue;
    const std::string& file = part.node_feats->name;
    // Every file has the times of all nodes.
    MILLRACE_ASSIGN_OR_RETURN(std::optional<StoredTensor> time,
                              FindTensor(file, *dict, "time"));
    if (time.has_value() && nodes.time == nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(nodes.time, TensorRows(file + ": time", *time));
    }
    const PickleValue* feats = FindKey(*dict, "feats");
    if (feats == nullptr) continue;
    MILLRACE_ASSIGN_OR_RETURN(std::optional<StoredTensor> x,
                              FindTensor(file, *feats, "x"));
    if (!x.has_value()) continue;
    // `id` counts within the type, `global_id` over all types.
    MILLRACE_ASSIGN_OR_RETURN(
        StoredTensor ids,
        RequireTensor(file, *dict, type == nullptr ? "global_id" : "id"));
    RowShare share;
    MILLRACE_ASSIGN_OR_RETURN(share.positions,
                              TensorRows(file + ": ids", std::move(ids)));
    MILLRACE_ASSIGN_OR_RETURN(share.values,
                              TensorRows(file + ": x", *std::move(x)));
    shares.push_back(std::move(share));
  }
  if (type != nullptr) MILLRACE_RETURN_IF_ERROR(DropPlaceholders(shares));
  MILLRACE_ASSIGN_OR_RETURN(nodes.feature,
                            folder_.Restore(StrCat("x of ", nodes.name), "node",
                                            std::move(shares), nodes.count));
  return absl::OkStatus();
}

absl::StatusOr<RawEdges> PygFolder::EndsOf(const Triple* relation) {
  RawEdges edges{.name = relation == nullptr ? "to" : (*relation)[1]};
  if (relation == nullptr) return edges;
  const auto type = [&](const std::string& name) -> absl::StatusOr<TypeIndex> {
    const auto found =
        std::find(meta_.node_types.begin(), meta_.node_types.end(), name);
    if (found != meta_.node_types.end()) {
      return static_cast<TypeIndex>(found - meta_.node_types.begin());
    }
    return absl::InvalidArgumentError(
        StrCat((folder_.directory() / "META.json").string(), ": edge type ",
               absl::StrJoin(*relation, "__"), " has node type ", name,
               ", which is not in node_types"));
  };
  MILLRACE_ASSIGN_OR_RETURN(edges.src, type((*relation)[0]));
  MILLRACE_ASSIGN_OR_RETURN(edges.dst, type((*relation)[2]));
  return edges;
}

absl::StatusOr<std::vector<RowShare>> PygFolder::Endpoints(
    const Triple* relation) {
  std::vector<RowShare> shares;
  for (const Part& part : parts_) {
    const PickleValue* dict = relation == nullptr
                                  ? &part.graph.root()
                                  : FindKey(part.graph.root(), *relation);
    if (dict == nullptr) continue;
    const std::string& file = part.graph.name;
    RowSources columns;
    for (const char* key : {"edge_id", "row", "col"}) {
      MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor,
                                RequireTensor(file, *dict, key));
      MILLRACE_ASSIGN_OR_RETURN(SourcePtr rows,
                                TensorRows(StrCat(file, ": ", key), tensor));
      columns.push_back(std::move(rows));
    }
    RowShare share;
    share.positions = columns[0];
    share.offset = edge_offset_;
    MILLRACE_ASSIGN_OR_RETURN(share.values,
                              JoinColumns(file, {columns[1], columns[2]}));
    shares.push_back(std::move(share));
  }
  return shares;
}

absl::Status PygFolder::AddRelation(const Triple* relation) {
  const Path path =
      folder_.directory() /
      (relation == nullptr
           ? Path("edge_map.pt")
           : Path("edge_map") / (absl::StrJoin(*relation, "__") + ".pt"));
  MILLRACE_ASSIGN_OR_RETURN(const StoredTensor owners, OpenTorchTensor(path));
  const int64_t count = owners.rows();
  MILLRACE_ASSIGN_OR_RETURN(RawEdges edges, EndsOf(relation));
  const std::string name = folder_.graph().RelationName(edges);
  MILLRACE_ASSIGN_OR_RETURN(std::vector<RowShare> shares, Endpoints(relation));
  MILLRACE_ASSIGN_OR_RETURN(edges.endpoints,
                            folder_.Restore(StrCat("edges of ", name), "edge",
                                            std::move(shares), count));
  if (edges.endpoints == nullptr) {
    return absl::InvalidArgumentError(StrCat(
        folder_.directory().string(), ": no graph.pt holds edge type ", name));
  }
  MILLRACE_RETURN_IF_ERROR(AddEdgeColumns(relation, count, edges));
  folder_.graph().edges.push_back(std::move(edges));
  edge_offset_ += relation == nullptr ? 0 : count;
  return absl::OkStatus();
}

absl::Status PygFolder::AddEdgeColumns(const Triple* relation, int64_t count,
                                       RawEdges& edges) {
  std::vector<RowShare> features, times;
  for (const Part& part : parts_) {
    const PickleValue* dict = Find(part.edge_feats, relation);
    if (dict == nullptr) continue;
    const std::string& file = part.edge_feats->name;
    // `global_id` counts within the relation. If there are only times, it is
    // missing, and graph.pt's edge_id is used, which counts over all relations.
    RowShare share;
    MILLRACE_ASSIGN_OR_RETURN(std::optional<StoredTensor> ids,
                              FindTensor(file, *dict, "global_id"));
    if (!ids.has_value()) {
      const PickleValue* graph = relation == nullptr
                                     ? &part.graph.root()
                                     : FindKey(part.graph.root(), *relation);
      if (graph == nullptr) continue;
      MILLRACE_ASSIGN_OR_RETURN(
          ids, RequireTensor(part.graph.name, *graph, "edge_id"));
      share.offset = edge_offset_;
    }
    MILLRACE_ASSIGN_OR_RETURN(share.positions,
                              TensorRows(file + ": ids", *std::move(ids)));
    const PickleValue* feats = FindKey(*dict, "feats");
    std::optional<StoredTensor> feature;
    if (feats != nullptr) {
      MILLRACE_ASSIGN_OR_RETURN(feature, FindTensor(file, *feats, "edge_attr"));
    }
    MILLRACE_ASSIGN_OR_RETURN(std::optional<StoredTensor> time,
                              FindTensor(file, *dict, "edge_time"));
    for (const auto& [tensor, shares] :
         {std::pair(&feature, &features), std::pair(&time, &times)}) {
      if (!tensor->has_value()) continue;
      MILLRACE_ASSIGN_OR_RETURN(share.values, TensorRows(file, **tensor));
      shares->push_back(share);
    }
  }
  if (relation != nullptr) MILLRACE_RETURN_IF_ERROR(DropPlaceholders(features));
  const std::string name = folder_.graph().RelationName(edges);
  MILLRACE_ASSIGN_OR_RETURN(
      edges.feature, folder_.Restore(StrCat("edge_attr of ", name), "edge",
                                     std::move(features), count));
  MILLRACE_ASSIGN_OR_RETURN(
      edges.time, folder_.Restore(StrCat("edge_time of ", name), "edge",
                                  std::move(times), count));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawGraph> OpenPygPartitions(const PartitionFolderInput& input,
                                           const ImportOptions& options) {
  return PygFolder(input, options).Describe();
}

}  // namespace millrace
