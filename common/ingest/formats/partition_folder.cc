// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/partition_folder.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/table/combined_rows.h"
#include "common/table/tensor_rows.h"
#include "common/torchfile/torch_file.h"

namespace millrace {
namespace {

using Path = std::filesystem::path;

constexpr const char* kFolderEnding = "-partitions";
constexpr std::pair<const char*, const char*> kSplits[] = {
    {"train", "train"}, {"val", "valid"}, {"test", "test"}};

// The absolute path of DS for a folder DS-partitions; nullopt for other names.
std::optional<Path> DatasetPrefix(const Path& directory) {
  Path folder = std::filesystem::absolute(directory).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  const std::string name = folder.filename();
  if (!absl::EndsWith(name, kFolderEnding)) return std::nullopt;
  return folder.parent_path() /
         name.substr(0, name.size() - std::string(kFolderEnding).size());
}

struct SplitFiles {
  RowSources ids;
  bool of_edges = false;
};

// Opens the files partition0.pt, partition1.pt, .. in a folder, if there are
// any.
absl::StatusOr<SplitFiles> OpenSplitFiles(const Path& folder) {
  SplitFiles files;
  for (int part = 0;; ++part) {
    const Path path = folder / StrCat("partition", part, ".pt");
    if (!FileExists(path)) return files;
    MILLRACE_ASSIGN_OR_RETURN(const PickledFile file, OpenTorchFile(path));
    if (file.root().kind == PickleKind::kDict) {
      files.of_edges = true;
      return files;
    }
    if (file.root().kind != PickleKind::kTensor) {
      return absl::InvalidArgumentError(StrCat(
          path.string(), ": a tensor of node ids is needed, but this is ",
          PickleKindName(file.root().kind)));
    }
    MILLRACE_ASSIGN_OR_RETURN(auto rows,
                              TensorRows(path.string(), file.root().tensor));
    files.ids.push_back(std::move(rows));
  }
}

}  // namespace

absl::Status PartitionFolder::AddNodes(const std::string& name,
                                       StoredTensor owners,
                                       const Path& owners_file) {
  RawNodes nodes{.name = name};
  MILLRACE_ASSIGN_OR_RETURN(
      nodes.owner, TensorRows(owners_file.string(), std::move(owners)));
  nodes.count = nodes.owner->rows();
  MILLRACE_ASSIGN_OR_RETURN(const bool integral, nodes.owner->Integral());
  if (!integral || nodes.owner->width() != 1) {
    return absl::InvalidArgumentError(
        StrCat(owners_file.string(),
               ": the partition of each node is needed, one integer per node"));
  }
  graph_.nodes.push_back(std::move(nodes));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RowSource>> PartitionFolder::Restore(
    const std::string& name, const char* kind, std::vector<RowShare> shares,
    int64_t rows) const {
  if (shares.empty()) return std::shared_ptr<const RowSource>();
  return RestoreRows(StrCat(input_.directory.string(), ": ", name), kind,
                     std::move(shares), rows, input_.restore);
}

absl::StatusOr<TypeIndex> PartitionFolder::TypeOfLabels(int64_t labels) const {
  std::vector<std::string> names, fitting;
  TypeIndex fits = 0;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const RawNodes& nodes = graph_.nodes[i];
    if (nodes.name == input_.type) return static_cast<TypeIndex>(i);
    names.push_back(nodes.name);
    if (labels >= 0 && nodes.count != labels) continue;
    fitting.push_back(nodes.name);
    fits = static_cast<TypeIndex>(i);
  }
  if (!input_.type.empty()) {
    return InvalidField(
        {.field = "type",
         .value = input_.type,
         .limit = StrCat("no such node type; the node types are ",
                         absl::StrJoin(names, ", "))});
  }
  if (fitting.size() == 1) return fits;
  if (graph_.nodes.size() == 1) return 0;  // the import will say what is wrong
  return InvalidField(
      {.field = "type",
       .limit =
           StrCat("the node type of the labels and splits is needed; ",
                  fitting.empty()
                      ? StrCat("none of ", absl::StrJoin(names, ", "), " has ",
                               labels, " nodes, the number of labels")
                      : StrCat("these have as many nodes as there are labels: ",
                               absl::StrJoin(fitting, ", ")))});
}

absl::Status PartitionFolder::AddLabelsAndSplits() {
  const std::optional<Path> prefix = DatasetPrefix(directory());
  if (!prefix.has_value()) return absl::OkStatus();
  std::vector<std::pair<std::string, RowSources>> splits;
  for (const auto& [theirs, ours] : kSplits) {
    const Path folder = StrCat(prefix->string(), "-", theirs, kFolderEnding);
    MILLRACE_ASSIGN_OR_RETURN(SplitFiles files, OpenSplitFiles(folder));
    if (files.of_edges) {
      LogWarning(
          "these are edges, not nodes: splits and labels are left out\ngive "
          "edges as seeds from a file instead",
          {{"folder", folder.string()}});
      return absl::OkStatus();
    }
    if (!files.ids.empty()) splits.emplace_back(ours, std::move(files.ids));
  }
  int64_t labels = -1;
  StoredTensor label;
  const Path label_path = StrCat(prefix->string(), "-label/label.pt");
  if (FileExists(label_path)) {
    MILLRACE_ASSIGN_OR_RETURN(label, OpenTorchTensor(label_path));
    labels = label.rows();
  }
  if (labels < 0 && splits.empty()) return absl::OkStatus();
  MILLRACE_ASSIGN_OR_RETURN(const TypeIndex type, TypeOfLabels(labels));
  if (labels >= 0) {
    MILLRACE_ASSIGN_OR_RETURN(
        graph_.nodes[type].label,
        TensorRows(label_path.string(), std::move(label)));
  }
  if (options_.makes_splits()) return absl::OkStatus();
  for (auto& [name, ids] : splits) {
    RawSplit split{.type = type, .name = name};
    MILLRACE_ASSIGN_OR_RETURN(
        split.ids, ConcatenateRows(StrCat("split ", name), std::move(ids)));
    graph_.splits.push_back(std::move(split));
  }
  return absl::OkStatus();
}

}  // namespace millrace
