// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/ogb.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/quoted.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/ingest/formats/ogb_binary.h"
#include "common/table/csv_rows.h"
#include "common/table/line_reader.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

using Path = std::filesystem::path;
using SourcePtr = std::shared_ptr<const RowSource>;
constexpr const char* kSplitParts[] = {"train", "valid", "test"};

// Opens the first of the files `names` that exists, or returns null if none
// does.
absl::StatusOr<SourcePtr> OptionalRows(
    const Path& directory, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::optional<Path> path = FindCsv(directory, name);
    if (!path.has_value()) continue;
    MILLRACE_ASSIGN_OR_RETURN(SourcePtr rows, OpenCsvRows(*path));
    return rows;
  }
  return SourcePtr();
}

absl::StatusOr<SourcePtr> RequiredRows(const Path& directory, const char* name,
                                       int64_t width = 0) {
  MILLRACE_ASSIGN_OR_RETURN(const Path path, RequireCsv(directory, name));
  MILLRACE_ASSIGN_OR_RETURN(SourcePtr rows, OpenCsvRows(path, width));
  return rows;
}

absl::StatusOr<int64_t> ParseCount(const Path& path, int line,
                                   const std::string& text) {
  int64_t count = 0;
  if (absl::SimpleAtoi(text, &count) && count >= 0) return count;
  return absl::InvalidArgumentError(StrCat(path.string(), ": line ", line, ": ",
                                           Quoted(text), " is not a count"));
}

// Reads a file with a single count: num-node-list or num-edge-list.
absl::StatusOr<int64_t> ReadCount(const Path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<std::vector<std::string>> lines,
                            ReadSmallCsv(path));
  if (lines.size() > 1) {
    return absl::InvalidArgumentError(StrCat(
        path.string(), ": ", lines.size(), " lines, so this is a collection ",
        "of ", lines.size(), " graphs; `import ogb` takes one graph"));
  }
  if (lines[0].size() != 1) {
    return absl::InvalidArgumentError(StrCat(
        path.string(), ": line 1: ", lines[0].size(), " fields; expected 1"));
  }
  return ParseCount(path, 1, lines[0][0]);
}

// Reads a file with a line of names and a line of values.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ReadNamed(
    const Path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<std::vector<std::string>> lines,
                            ReadSmallCsv(path));
  if (lines.size() != 2 || lines[0].size() != lines[1].size()) {
    return absl::InvalidArgumentError(StrCat(
        path.string(), ": expected a line of node types and a line with ",
        "as many values; found ", lines.size(), " lines"));
  }
  std::vector<std::pair<std::string, std::string>> named;
  for (size_t i = 0; i < lines[0].size(); ++i) {
    named.emplace_back(lines[0][i], lines[1][i]);
  }
  return named;
}

absl::Status DescribeEdges(const Path& directory, RawEdges& edges) {
  MILLRACE_ASSIGN_OR_RETURN(edges.endpoints,
                            RequiredRows(directory, "edge", 2));
  if (const std::optional<Path> path = FindCsv(directory, "num-edge-list")) {
    MILLRACE_ASSIGN_OR_RETURN(edges.declared_count, ReadCount(*path));
    edges.declared_by = path->string();
  }
  MILLRACE_ASSIGN_OR_RETURN(
      edges.weight, OptionalRows(directory, {"edge_weight", "edge-weight"}));
  MILLRACE_ASSIGN_OR_RETURN(
      edges.time, OptionalRows(directory, {"edge_time", "edge_year"}));
  MILLRACE_ASSIGN_OR_RETURN(
      edges.type, OptionalRows(directory, {"edge_reltype", "edge_type"}));
  MILLRACE_ASSIGN_OR_RETURN(
      edges.feature, OptionalRows(directory, {"edge-feat", "edge_feat"}));
  return absl::OkStatus();
}

class OgbFolder {
 public:
  OgbFolder(const OgbInput& input, const ImportOptions& options)
      : input_(input), options_(options), raw_(input.directory / "raw") {}

  absl::StatusOr<RawGraph> Describe() {
    if (!IsDirectory(raw_)) {
      return absl::NotFoundError(
          StrCat(raw_.string(), ": no such folder; an OGB folder has raw/"));
    }
    if (FindCsv(raw_, "triplet-type-list").has_value()) {
      MILLRACE_RETURN_IF_ERROR(AddRelations());
      MILLRACE_RETURN_IF_ERROR(AddNodeTypes());
    } else if (IsOgbBinary(raw_)) {
      const std::string type(kHomogeneousType);
      MILLRACE_RETURN_IF_ERROR(
          AddOgbBinary(raw_, HasOwnFeatures(type), graph_));
    } else {
      MILLRACE_RETURN_IF_ERROR(AddHomogeneous());
    }
    MILLRACE_RETURN_IF_ERROR(ReplaceFeatures());
    if (!options_.makes_splits()) {
      MILLRACE_RETURN_IF_ERROR(AddSplits());
    }
    return std::move(graph_);
  }

 private:
  absl::Status AddHomogeneous();
  absl::Status AddRelations();
  absl::Status AddNodeTypes();
  absl::Status AddNodeColumns(RawNodes& nodes);
  absl::StatusOr<bool> TypeHas(const char* what, const std::string& type,
                               const Path& directory) const;
  absl::Status ReplaceFeatures();
  absl::StatusOr<std::optional<std::string>> ChooseSplit() const;
  absl::Status AddSplits();
  absl::Status AddSplit(TypeIndex type, const Path& directory);

  bool HasOwnFeatures(const std::string& type) const {
    return input_.features.contains(type) || input_.features.contains("");
  }
  TypeIndex TypeOf(const std::string& name) {
    const auto found =
        std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                     [&](const RawNodes& nodes) { return nodes.name == name; });
    if (found == graph_.nodes.end()) {
      graph_.nodes.push_back({.name = name, .count = -1});
      return static_cast<TypeIndex>(graph_.nodes.size()) - 1;
    }
    return static_cast<TypeIndex>(found - graph_.nodes.begin());
  }

  const OgbInput& input_;
  const ImportOptions& options_;
  const Path raw_;
  RawGraph graph_;
  bool heterogeneous_ = false;
};

absl::Status OgbFolder::AddHomogeneous() {
  MILLRACE_ASSIGN_OR_RETURN(const Path counts,
                            RequireCsv(raw_, "num-node-list"));
  RawNodes nodes{.name = std::string(kHomogeneousType)};
  MILLRACE_ASSIGN_OR_RETURN(nodes.count, ReadCount(counts));
  nodes.count_reason = StrCat(counts.string(), " declares this number");
  if (!HasOwnFeatures(nodes.name)) {
    MILLRACE_ASSIGN_OR_RETURN(nodes.feature, OptionalRows(raw_, {"node-feat"}));
  }
  MILLRACE_ASSIGN_OR_RETURN(nodes.label, OptionalRows(raw_, {"node-label"}));
  MILLRACE_ASSIGN_OR_RETURN(nodes.time,
                            OptionalRows(raw_, {"node_time", "node_year"}));
  graph_.nodes.push_back(std::move(nodes));
  RawEdges edges{.name = "to"};
  MILLRACE_RETURN_IF_ERROR(DescribeEdges(raw_, edges));
  graph_.edges.push_back(std::move(edges));
  return absl::OkStatus();
}

// Node types are numbered in the order of their first appearance in the
// relations.
absl::Status OgbFolder::AddRelations() {
  heterogeneous_ = true;
  MILLRACE_ASSIGN_OR_RETURN(const Path path,
                            RequireCsv(raw_, "triplet-type-list"));
  MILLRACE_ASSIGN_OR_RETURN(std::vector<std::vector<std::string>> triplets,
                            ReadSmallCsv(path));
  for (size_t i = 0; i < triplets.size(); ++i) {
    const std::vector<std::string>& triplet = triplets[i];
    if (triplet.size() != 3) {
      return absl::InvalidArgumentError(
          StrCat(path.string(), ": line ", i + 1, ": ", triplet.size(),
                 " fields; expected source, relation and destination"));
    }
    RawEdges edges;
    edges.src = TypeOf(triplet[0]);
    edges.name = triplet[1];
    edges.dst = TypeOf(triplet[2]);
    const Path directory = raw_ / "relations" / absl::StrJoin(triplet, "___");
    if (!IsDirectory(directory)) {
      return absl::NotFoundError(
          StrCat(directory.string(), ": no such folder, but ", path.string(),
                 " line ", i + 1, " names this relation"));
    }
    MILLRACE_RETURN_IF_ERROR(DescribeEdges(directory, edges));
    graph_.edges.push_back(std::move(edges));
  }
  return absl::OkStatus();
}

absl::Status OgbFolder::AddNodeTypes() {
  MILLRACE_ASSIGN_OR_RETURN(const Path path, RequireCsv(raw_, "num-node-dict"));
  MILLRACE_ASSIGN_OR_RETURN(auto counts, ReadNamed(path));
  for (const auto& [name, text] : counts) {
    const TypeIndex type = TypeOf(name);
    MILLRACE_ASSIGN_OR_RETURN(graph_.nodes[type].count,
                              ParseCount(path, 2, text));
    graph_.nodes[type].count_reason =
        StrCat(path.string(), " declares this number");
  }
  for (RawNodes& nodes : graph_.nodes) {
    if (nodes.count < 0) {
      return absl::InvalidArgumentError(
          StrCat(path.string(), ": node type ", nodes.name,
                 " of a relation is not listed here"));
    }
    MILLRACE_RETURN_IF_ERROR(AddNodeColumns(nodes));
  }
  return absl::OkStatus();
}

absl::Status OgbFolder::AddNodeColumns(RawNodes& nodes) {
  const auto directory = [&](const char* column) {
    return raw_ / column / nodes.name;
  };
  MILLRACE_ASSIGN_OR_RETURN(
      const bool has_feature,
      TypeHas("nodetype-has-feat", nodes.name, directory("node-feat")));
  if (has_feature && !HasOwnFeatures(nodes.name)) {
    MILLRACE_ASSIGN_OR_RETURN(
        nodes.feature, RequiredRows(directory("node-feat"), "node-feat"));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const bool has_label,
      TypeHas("nodetype-has-label", nodes.name, directory("node-label")));
  if (has_label) {
    MILLRACE_ASSIGN_OR_RETURN(
        nodes.label, RequiredRows(directory("node-label"), "node-label"));
  }
  for (const char* column : {"node_time", "node_year"}) {
    if (nodes.time != nullptr) break;
    MILLRACE_ASSIGN_OR_RETURN(nodes.time,
                              OptionalRows(directory(column), {column}));
  }
  return absl::OkStatus();
}

// Returns what the file `what` says about a type or, if there is no such file,
// whether `directory` exists.
absl::StatusOr<bool> OgbFolder::TypeHas(const char* what,
                                        const std::string& type,
                                        const Path& directory) const {
  const std::optional<Path> path = FindCsv(raw_, what);
  if (!path.has_value()) return IsDirectory(directory);
  MILLRACE_ASSIGN_OR_RETURN(auto flags, ReadNamed(*path));
  for (const auto& [name, flag] : flags) {
    if (name != type) continue;
    if (flag == "True" || flag == "False") return flag == "True";
    return absl::InvalidArgumentError(
        StrCat(path->string(), ": line 2: ", Quoted(flag), " of ", type,
               " is neither True nor False"));
  }
  return false;
}

absl::Status OgbFolder::ReplaceFeatures() {
  for (const auto& [name, path] : input_.features) {
    const std::string type =
        name.empty() && !heterogeneous_ ? graph_.nodes[0].name : name;
    const auto found =
        std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                     [&](const RawNodes& nodes) { return nodes.name == type; });
    if (found == graph_.nodes.end()) {
      const auto append_name = [](std::string* out, const RawNodes& nodes) {
        out->append(nodes.name);
      };
      return InvalidField(
          {.field = "features",
           .value =
               StrCat(name.empty() ? "" : StrCat(name, "="), path.string()),
           .limit = StrCat("give TYPE=FILE with a node type of this graph: ",
                           absl::StrJoin(graph_.nodes, ", ", append_name))});
    }
    MILLRACE_ASSIGN_OR_RETURN(found->feature, OpenNpyRows(path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> OgbFolder::ChooseSplit() const {
  const Path root = input_.directory / "split";
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    if (entry.is_directory(error)) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  if (input_.split.empty()) {
    if (names.empty()) return std::nullopt;
    if (names.size() == 1) return names[0];
    return InvalidField({.problem = FieldError::Problem::kMissing,
                         .field = "split",
                         .limit = StrCat(root.string(), " has several splits: ",
                                         absl::StrJoin(names, ", "))});
  }
  if (std::find(names.begin(), names.end(), input_.split) != names.end()) {
    return input_.split;
  }
  return absl::NotFoundError(StrCat(
      (root / input_.split).string(), ": no such split; ",
      names.empty() ? "there are none"
                    : StrCat("the splits are ", absl::StrJoin(names, ", "))));
}

absl::Status OgbFolder::AddSplits() {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<std::string> name, ChooseSplit());
  if (!name.has_value()) return absl::OkStatus();
  const Path directory = input_.directory / "split" / *name;
  if (!heterogeneous_) return AddSplit(0, directory);
  const std::optional<Path> flags_path =
      FindCsv(directory, "nodetype-has-split");
  std::vector<std::pair<std::string, std::string>> flags;
  if (flags_path.has_value()) {
    MILLRACE_ASSIGN_OR_RETURN(flags, ReadNamed(*flags_path));
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const std::string& type = graph_.nodes[i].name;
    bool has_split = IsDirectory(directory / type);
    for (const auto& [flag_type, flag] : flags) {
      if (flag_type == type) has_split = flag == "True";
    }
    if (!has_split) continue;
    MILLRACE_RETURN_IF_ERROR(
        AddSplit(static_cast<TypeIndex>(i), directory / type));
  }
  return absl::OkStatus();
}

absl::Status OgbFolder::AddSplit(TypeIndex type, const Path& directory) {
  for (const char* part : kSplitParts) {
    RawSplit split{.type = type, .name = part};
    MILLRACE_ASSIGN_OR_RETURN(split.ids, RequiredRows(directory, part, 1));
    graph_.splits.push_back(std::move(split));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawGraph> OpenOgb(const OgbInput& input,
                                 const ImportOptions& options) {
  return OgbFolder(input, options).Describe();
}

}  // namespace millrace
