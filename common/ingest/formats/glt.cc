// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/glt.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
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

struct GltMeta {
  int parts = 0;
  bool heterogeneous = false;
  std::vector<std::string> node_types;
  std::vector<std::vector<std::string>> relations;  // source, name, destination
};

absl::StatusOr<std::vector<std::string>> Texts(const std::string& file,
                                               const PickleValue& list) {
  std::vector<std::string> texts;
  for (const PickleValue* item : list.items) {
    if (item->kind != PickleKind::kText) {
      return absl::InvalidArgumentError(
          StrCat(file, ": a type's name is ", PickleKindName(item->kind)));
    }
    texts.emplace_back(item->bytes);
  }
  return texts;
}

absl::StatusOr<GltMeta> ReadGltMeta(const Path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const PickledFile file, OpenPickle(path));
  const auto find = [&](const char* key) { return FindKey(file.root(), key); };
  const PickleValue* parts = find("num_parts");
  if (parts == nullptr || parts->kind != PickleKind::kInteger ||
      parts->integer < 1 || parts->integer > kMaxPartitions) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": num_parts is not 1 to ", kMaxPartitions));
  }
  GltMeta meta;
  meta.parts = static_cast<int>(parts->integer);
  const PickleValue* kind = find("data_cls");
  meta.heterogeneous = kind != nullptr && kind->bytes == "hetero";
  if (!meta.heterogeneous) return meta;
  const PickleValue* nodes = find("node_types");
  const PickleValue* relations = find("edge_types");
  if (nodes == nullptr || relations == nullptr) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": there are no node_types or no edge_types"));
  }
  MILLRACE_ASSIGN_OR_RETURN(meta.node_types, Texts(file.name, *nodes));
  for (const PickleValue* relation : relations->items) {
    MILLRACE_ASSIGN_OR_RETURN(std::vector<std::string> triple,
                              Texts(file.name, *relation));
    if (triple.size() != 3) {
      return absl::InvalidArgumentError(
          StrCat(path.string(), ": an edge type has ", triple.size(),
                 " strings; it needs source, name and destination"));
    }
    meta.relations.push_back(std::move(triple));
  }
  return meta;
}

// Opens a column of features or ids: DIR/STEM.pkl (appended pickles) or
// DIR/STEM.pt. Null if neither exists, or it has no tensors.
absl::StatusOr<SourcePtr> OpenColumn(const Path& directory,
                                     const std::string& stem) {
  Path path = directory / (stem + ".pkl");
  std::vector<StoredTensor> tensors;
  std::error_code error;
  if (FileExists(path)) {
    if (std::filesystem::file_size(path, error) == 0) return SourcePtr();
    MILLRACE_ASSIGN_OR_RETURN(tensors, OpenPickledTensors(path));
  } else {
    path = directory / (stem + ".pt");
    if (!FileExists(path)) return SourcePtr();
    MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor, OpenTorchTensor(path));
    tensors.push_back(std::move(tensor));
  }
  RowSources rows;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = tensors.size() == 1
                                 ? path.string()
                                 : StrCat(path.string(), ": tensor ", i);
    MILLRACE_ASSIGN_OR_RETURN(SourcePtr source,
                              TensorRows(name, std::move(tensors[i])));
    rows.push_back(std::move(source));
  }
  if (rows.empty()) return SourcePtr();
  return ConcatenateRows(path.string(), std::move(rows));
}

// The positions, in ascending order, of the rows that partition 0 owns, then of
// those that partition 1 owns, and so on.
class RowsByOwner final : public RowSource {
 public:
  RowsByOwner(SourcePtr book, int parts)
      : RowSource(book->name(), 1, book->rows()),
        book_(std::move(book)),
        parts_(parts) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    return std::make_unique<Reader>(book_, parts_);
  }
  absl::StatusOr<bool> Integral() const override { return true; }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": value ", row, " in the order of partitions");
  }

 private:
  class Reader final : public RowReader {
   public:
    Reader(SourcePtr book, int parts) : book_(std::move(book)), parts_(parts) {}

    // Reads the book once per partition.
    absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                         int64_t* values) override {
      int64_t rows = 0;
      while (rows < max_rows && part_ < parts_) {
        if (next_ == owners_.size()) {
          MILLRACE_RETURN_IF_ERROR(ReadOwners());
          continue;
        }
        if (owners_[next_++] == part_) values[rows++] = position_;
        ++position_;
      }
      given_ += rows;
      if (rows < max_rows && given_ != book_->rows()) {
        return absl::InvalidArgumentError(StrCat(
            book_->name(), ": ", book_->rows() - given_,
            " values are not partition numbers, which are 0 to ", parts_ - 1));
      }
      return rows;
    }
    absl::StatusOr<int64_t> ReadFloats(int64_t, float*) override {
      return absl::InvalidArgumentError("positions are not floats");
    }

   private:
    // Reads the next block of owners. At the end of the book, it starts over
    // for the next partition.
    absl::Status ReadOwners() {
      if (reader_ == nullptr) {
        MILLRACE_ASSIGN_OR_RETURN(reader_, book_->Open());
        position_ = 0;
      }
      owners_.resize(kBlockRows);
      next_ = 0;
      MILLRACE_ASSIGN_OR_RETURN(
          const int64_t rows,
          reader_->ReadIntegers(kBlockRows, owners_.data()));
      owners_.resize(static_cast<size_t>(rows));
      if (rows > 0) return absl::OkStatus();
      reader_ = nullptr;
      ++part_;
      return absl::OkStatus();
    }

    const SourcePtr book_;
    const int parts_;
    std::unique_ptr<RowReader> reader_;
    int part_ = 0;
    std::vector<int64_t> owners_;
    size_t next_ = 0;       // index into owners_
    int64_t position_ = 0;  // position of owners_[next_] in the book
    int64_t given_ = 0;
  };

  const SourcePtr book_;
  const int parts_;
};

class GltFolder {
 public:
  GltFolder(const PartitionFolderInput& input, const ImportOptions& options)
      : folder_(input, options) {}

  absl::StatusOr<RawGraph> Describe() {
    MILLRACE_ASSIGN_OR_RETURN(meta_, ReadGltMeta(folder_.directory() / "META"));
    if (meta_.heterogeneous) {
      for (const std::string& type : meta_.node_types) {
        MILLRACE_RETURN_IF_ERROR(AddNodes(type, type));
      }
      for (const std::vector<std::string>& relation : meta_.relations) {
        MILLRACE_RETURN_IF_ERROR(AddRelation(relation));
      }
    } else {
      MILLRACE_RETURN_IF_ERROR(AddNodes(std::string(kHomogeneousType), ""));
      MILLRACE_RETURN_IF_ERROR(AddRelation({}));
    }
    MILLRACE_RETURN_IF_ERROR(folder_.AddLabelsAndSplits());
    return std::move(folder_.graph());
  }

 private:
  using Triple = std::vector<std::string>;

  // `key` names the folder or file of the type; "" in a homogeneous graph.
  absl::Status AddNodes(const std::string& name, const std::string& key);
  absl::StatusOr<SourcePtr> Features(const char* group, const std::string& key,
                                     const char* kind, int64_t rows) const;
  absl::Status AddRelation(const Triple& relation);
  absl::StatusOr<RawEdges> EndsOf(const Triple& relation) const;
  absl::Status AddTopology(const std::string& key, RawEdges& edges);
  absl::StatusOr<SourcePtr> IdsOfCached(const std::string& key) const;

  Path PartPath(int part, const char* group, const std::string& key) const {
    const Path path = folder_.directory() / StrCat("part", part) / group;
    return key.empty() ? path : path / key;
  }
  // The partition book of nodes ("node_pb") or edges.
  Path BookPath(const char* book, const std::string& key) const {
    return folder_.directory() / (key.empty()
                                      ? Path(StrCat(book, ".pt"))
                                      : Path(book) / StrCat(key, ".pt"));
  }

  PartitionFolder folder_;
  GltMeta meta_;
};

absl::Status GltFolder::AddNodes(const std::string& name,
                                 const std::string& key) {
  const Path path = BookPath("node_pb", key);
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor owners, OpenTorchTensor(path));
  MILLRACE_RETURN_IF_ERROR(folder_.AddNodes(name, std::move(owners), path));
  RawNodes& nodes = folder_.graph().nodes.back();
  MILLRACE_ASSIGN_OR_RETURN(nodes.feature,
                            Features("node_feat", key, "node", nodes.count));
  return absl::OkStatus();
}

absl::StatusOr<SourcePtr> GltFolder::Features(const char* group,
                                              const std::string& key,
                                              const char* kind,
                                              int64_t rows) const {
  std::vector<RowShare> shares;
  for (int part = 0; part < meta_.parts; ++part) {
    const Path directory = PartPath(part, group, key);
    RowShare share;
    MILLRACE_ASSIGN_OR_RETURN(share.values, OpenColumn(directory, "feats"));
    if (share.values == nullptr) continue;
    MILLRACE_ASSIGN_OR_RETURN(share.positions, OpenColumn(directory, "ids"));
    if (share.positions == nullptr) {
      return absl::NotFoundError(StrCat((directory / "ids.pkl").string(),
                                        ": no such file, but ",
                                        share.values->name(), " exists"));
    }
    shares.push_back(std::move(share));
  }
  return folder_.Restore(
      key.empty() ? std::string(group) : StrCat(group, " of ", key), kind,
      std::move(shares), rows);
}

absl::StatusOr<RawEdges> GltFolder::EndsOf(const Triple& relation) const {
  RawEdges edges{.name = relation.empty() ? "to" : relation[1]};
  if (relation.empty()) return edges;
  for (const auto& [name, type] : {std::pair(&relation[0], &edges.src),
                                   std::pair(&relation[2], &edges.dst)}) {
    const auto found =
        std::find(meta_.node_types.begin(), meta_.node_types.end(), *name);
    if (found == meta_.node_types.end()) {
      return absl::InvalidArgumentError(
          StrCat((folder_.directory() / "META").string(), ": edge type ",
                 absl::StrJoin(relation, "__"), " has node type ", *name,
                 ", which is not in node_types"));
    }
    *type = static_cast<TypeIndex>(found - meta_.node_types.begin());
  }
  return edges;
}

absl::Status GltFolder::AddRelation(const Triple& relation) {
  const std::string key = absl::StrJoin(relation, "__");
  MILLRACE_ASSIGN_OR_RETURN(RawEdges edges, EndsOf(relation));
  MILLRACE_RETURN_IF_ERROR(AddTopology(key, edges));
  if (edges.endpoints == nullptr) {
    return absl::NotFoundError(
        StrCat(PartPath(0, "graph", key).string(),
               ": no rows.pt there, nor in the folders of other parts"));
  }
  MILLRACE_ASSIGN_OR_RETURN(edges.feature, Features("edge_feat", key, "edge",
                                                    edges.endpoints->rows()));
  folder_.graph().edges.push_back(std::move(edges));
  return absl::OkStatus();
}

// The edges in one folder. `ids` and `weights` may be null.
struct Topology {
  SourcePtr ends, ids, weights;
};

absl::StatusOr<Topology> OpenTopology(const Path& directory) {
  Topology topology;
  RowSources ends;
  for (const char* stem : {"rows", "cols"}) {
    MILLRACE_ASSIGN_OR_RETURN(SourcePtr column, OpenColumn(directory, stem));
    if (column == nullptr) {
      return absl::NotFoundError(
          StrCat((directory / stem).string(), ".pt: no such file"));
    }
    ends.push_back(std::move(column));
  }
  if (ends[0]->rows() != ends[1]->rows()) {
    return absl::InvalidArgumentError(
        StrCat(directory.string(), ": rows.pt has ", ends[0]->rows(),
               " values and cols.pt has ", ends[1]->rows(),
               ", so the graph was converted to CSR or CSC, which does not "
               "keep edge ids\nimport the folder as the partitioner wrote it"));
  }
  MILLRACE_ASSIGN_OR_RETURN(topology.ends,
                            JoinColumns(directory.string(), std::move(ends)));
  MILLRACE_ASSIGN_OR_RETURN(topology.ids, OpenColumn(directory, "eids"));
  MILLRACE_ASSIGN_OR_RETURN(topology.weights, OpenColumn(directory, "weights"));
  return topology;
}

// The ids of cached edges; null if there is no partition book. A cached graph
// has the edges of one partition after the other, and those of a partition in
// their original order.
absl::StatusOr<SourcePtr> GltFolder::IdsOfCached(const std::string& key) const {
  const Path path = BookPath("edge_pb", key);
  if (!FileExists(path)) return SourcePtr();
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor book, OpenTorchTensor(path));
  MILLRACE_ASSIGN_OR_RETURN(SourcePtr rows,
                            TensorRows(path.string(), std::move(book)));
  return std::make_shared<RowsByOwner>(std::move(rows), meta_.parts);
}

absl::Status GltFolder::AddTopology(const std::string& key, RawEdges& edges) {
  const Path cached = folder_.directory() / "graph";
  const bool is_cached = FileExists(cached);
  std::vector<Path> directories;
  if (is_cached) directories.push_back(key.empty() ? cached : cached / key);
  for (int part = 0; part < meta_.parts && !is_cached; ++part) {
    const Path directory = PartPath(part, "graph", key);
    if (FileExists(directory)) directories.push_back(directory);
  }
  std::vector<RowShare> ends, weights;
  int64_t count = 0;
  for (const Path& directory : directories) {
    MILLRACE_ASSIGN_OR_RETURN(Topology topology, OpenTopology(directory));
    if (topology.ids == nullptr) {
      if (!is_cached) {
        return absl::NotFoundError(
            StrCat((directory / "eids.pt").string(), ": no such file"));
      }
      MILLRACE_ASSIGN_OR_RETURN(topology.ids, IdsOfCached(key));
    }
    if (topology.ids == nullptr) {
      edges.endpoints = std::move(topology.ends);
      edges.weight = std::move(topology.weights);
      return absl::OkStatus();
    }
    count += topology.ends->rows();
    ends.push_back({topology.ids, topology.ends});
    if (topology.weights == nullptr) continue;
    weights.push_back({topology.ids, topology.weights});
  }
  const std::string name = folder_.graph().RelationName(edges);
  MILLRACE_ASSIGN_OR_RETURN(edges.endpoints,
                            folder_.Restore(StrCat("edges of ", name), "edge",
                                            std::move(ends), count));
  MILLRACE_ASSIGN_OR_RETURN(edges.weight,
                            folder_.Restore(StrCat("weights of ", name), "edge",
                                            std::move(weights), count));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawGraph> OpenGltPartitions(const PartitionFolderInput& input,
                                           const ImportOptions& options) {
  return GltFolder(input, options).Describe();
}

}  // namespace millrace
