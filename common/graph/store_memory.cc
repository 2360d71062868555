// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes_text.h"
#include "common/base/host_memory.h"
#include "common/base/huge_array.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

constexpr std::string_view kAdvice =
    "map the files instead, or serve fewer partitions on this host";

struct MappedArray {
  std::string path;
  Array* array;
};

// Adds all columns except the weights, since draws read only their sums.
void AddLists(int part, const std::string& relation, Direction direction,
              NeighborLists& lists, std::vector<MappedArray>& arrays) {
  const auto add = [&](std::string_view column, Array& array) {
    arrays.push_back({ListPath(part, relation, direction, column), &array});
  };
  add("indptr", lists.indptr);
  add("indices", lists.indices);
  add("edge_id", lists.edge_id);
  add("weight_sum", lists.weight_sum);
  add("time", lists.time);
  add("type", lists.type);
  add("slot", lists.slot);
  add("neighbor_original_id", lists.neighbor_original_id);
}

void AddNodes(int part, const std::string& type, Store::Content content,
              NodeColumns& nodes, std::vector<MappedArray>& arrays) {
  const auto add = [&](std::string_view column, Array& array) {
    arrays.push_back({NodePath(part, type, column), &array});
  };
  if (content == Store::Content::kFeatures) {
    return add("feature", nodes.feature);
  }
  add("original_id", nodes.original_id);
  add("label", nodes.label);
  add("time", nodes.time);
  add("hotness", nodes.hotness);
  arrays.push_back({LookupPath(part, type), &nodes.lookup});
}

void AddEdges(int part, const std::string& relation, Store::Content content,
              EdgeColumns& edges, std::vector<MappedArray>& arrays) {
  if (content == Store::Content::kFeatures) {
    arrays.push_back({EdgeFeaturePath(part, relation), &edges.feature});
    return;
  }
  AddLists(part, relation, Direction::kIn, edges.in, arrays);
  AddLists(part, relation, Direction::kOut, edges.out, arrays);
}

// Reads the bytes that precede the data in the file.
absl::StatusOr<std::string> ReadHeader(const std::filesystem::path& file,
                                       const Array& data) {
  uint64_t bytes = 0;
  MILLRACE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForReading(file, &bytes));
  if (bytes < data.total_bytes()) {
    return absl::DataLossError(StrCat(file.native(), " has ", bytes,
                                      " bytes; its data had ",
                                      data.total_bytes()));
  }
  std::string header(bytes - data.total_bytes(), '\0');
  MILLRACE_ASSIGN_OR_RETURN(
      const size_t read,
      ReadAt(fd.get(), file, header.data(), header.size(), 0));
  header.resize(read);
  return header;
}

absl::StatusOr<Array> CopyOf(const Array& array,
                             const Store::AllocateArray& allocate) {
  MILLRACE_ASSIGN_OR_RETURN(Array copy, allocate(array.dtype(), array.shape()));
  if (array.total_bytes() > 0) {
    std::memcpy(copy.mutable_data(), array.data(), array.total_bytes());
  }
  return copy;
}

}  // namespace

absl::Status Store::LoadIntoMemory(Content content,
                                   const AllocateArray& allocate) {
  std::vector<MappedArray> arrays;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    if (partitions_[p] == nullptr) continue;
    const int part = static_cast<int>(p);
    for (size_t i = 0; i < partitions_[p]->nodes.size(); ++i) {
      AddNodes(part, schema().node_types[i].name, content,
               partitions_[p]->nodes[i], arrays);
    }
    for (size_t i = 0; i < partitions_[p]->edges.size(); ++i) {
      AddEdges(part, schema().RelationName(static_cast<int>(i)), content,
               partitions_[p]->edges[i], arrays);
    }
  }
  std::erase_if(arrays,
                [](const MappedArray& each) { return !each.array->present(); });
  uint64_t bytes = 0;
  for (const MappedArray& each : arrays) {
    bytes += HugeBlockBytes(each.array->total_bytes());
  }
  const std::string_view what =
      content == Content::kGraph ? "the graph" : "features";
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(StrCat("holding ", what, " in RAM"), bytes, kAdvice));
  // Nothing changes unless there is memory for all.
  std::vector<LoadedFile> copies;
  for (const auto& [path, array] : arrays) {
    MILLRACE_ASSIGN_OR_RETURN(std::string header,
                              ReadHeader(path_ / path, *array));
    absl::StatusOr<Array> copy = CopyOf(*array, allocate);
    if (absl::IsResourceExhausted(copy.status())) {
      return absl::ResourceExhaustedError(
          StrCat(FirstLine(copy.status()), "; ", BytesText(bytes),
                 " are needed for ", what, "\n", kAdvice));
    }
    MILLRACE_RETURN_IF_ERROR(copy.status());
    copies.push_back({std::move(header), *std::move(copy)});
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    *arrays[i].array = copies[i].data;
    loaded_[arrays[i].path] = std::move(copies[i]);
  }
  (content == Content::kGraph ? graph_bytes_ : feature_bytes_) = bytes;
  return absl::OkStatus();
}

const Store::LoadedFile* Store::FindLoaded(std::string_view path) const {
  const auto found = loaded_.find(path);
  return found == loaded_.end() ? nullptr : &found->second;
}

}  // namespace millrace
