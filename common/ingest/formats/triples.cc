// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/triples.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/graph/schema.h"
#include "common/table/combined_rows.h"
#include "common/table/csv_rows.h"
#include "common/table/line_reader.h"
#include "common/table/triple_rows.h"

namespace millrace {
namespace {

using Path = std::filesystem::path;

constexpr const char* kParts[] = {"train", "valid", "test"};
constexpr TripleView kHeadTail = {2, {0, 2}, 0};
constexpr TripleView kTailHead = {2, {2, 0}, 0};
constexpr TripleView kRelation = {1, {1, 0}, 0};

absl::StatusOr<std::array<int, 3>> ParseColumns(const std::string& text) {
  constexpr std::string_view kLetters = "hrt";
  std::array<int, 3> columns = {-1, -1, -1};
  bool valid = text.size() == 5 && text[1] == ',' && text[3] == ',';
  for (int i = 0; valid && i < 3; ++i) {
    const size_t part = kLetters.find(text[2 * i]);
    valid = part != std::string_view::npos && columns[part] < 0;
    if (valid) columns[part] = i;
  }
  if (valid) return columns;
  return InvalidField(
      {.field = "columns",
       .value = std::string(text),
       .limit = "give h (head), r (relation) and t (tail) in the order of the "
                "file's columns, such as h,r,t"});
}

// Reads a file with a single number: how many of `kind` there are.
absl::StatusOr<std::shared_ptr<Numbering>> ReadDeclared(const Path& directory,
                                                        const char* stem,
                                                        const char* kind) {
  MILLRACE_ASSIGN_OR_RETURN(const Path path, RequireCsv(directory, stem));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> rows,
                            OpenCsvRows(path, 1));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, rows->Open());
  int64_t counts[2] = {-1, -1};
  MILLRACE_ASSIGN_OR_RETURN(const int64_t lines,
                            reader->ReadIntegers(2, counts));
  if (lines != 1 || counts[0] < 0) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": expected one line with a count"));
  }
  return std::make_shared<Numbering>(kind, counts[0], path.string());
}

class TriplesFolder {
 public:
  explicit TriplesFolder(const TriplesInput& input) : input_(input) {}

  absl::StatusOr<RawGraph> Describe() {
    MILLRACE_ASSIGN_OR_RETURN(pattern_.columns, ParseColumns(input_.columns));
    numbered_ = IsDirectory(input_.directory / "split");
    MILLRACE_RETURN_IF_ERROR(numbered_ ? FindNumbered() : FindNamed());
    for (TripleFile& file : files_) {
      MILLRACE_RETURN_IF_ERROR(ScanTriples(file));
    }
    MILLRACE_RETURN_IF_ERROR(CheckCounts());
    return Graph();
  }

 private:
  absl::Status FindNumbered();
  absl::StatusOr<Path> SplitFolder() const;
  absl::Status FindNamed();
  absl::StatusOr<Path> NamedFile(const char* part) const;
  absl::Status CheckCounts() const;
  absl::StatusOr<RawGraph> Graph() const;

  const TriplesInput& input_;
  bool numbered_ = false;
  TripleFile pattern_;  // what all files have in common
  std::vector<TripleFile> files_;
};

absl::StatusOr<Path> TriplesFolder::SplitFolder() const {
  const Path all = input_.directory / "split";
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(all, error)) {
    if (entry.is_directory(error)) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  if (input_.split.empty() && names.size() == 1) return all / names[0];
  if (!input_.split.empty() && IsDirectory(all / input_.split)) {
    return all / input_.split;
  }
  const std::string there =
      StrCat(all.string(), " has ",
             names.empty() ? "no folders" : absl::StrJoin(names, ", "));
  if (input_.split.empty()) {
    return InvalidField({.problem = FieldError::Problem::kMissing,
                         .field = "split",
                         .limit = there});
  }
  return InvalidField({.field = "split",
                       .value = input_.split,
                       .limit = StrCat("there is no such split; ", there)});
}

absl::Status TriplesFolder::FindNumbered() {
  const Path raw = input_.directory / "raw";
  MILLRACE_ASSIGN_OR_RETURN(const Path folder, SplitFolder());
  MILLRACE_ASSIGN_OR_RETURN(pattern_.entities,
                            ReadDeclared(raw, "num-node-list", "entity"));
  MILLRACE_ASSIGN_OR_RETURN(pattern_.relations,
                            ReadDeclared(raw, "num-relation-list", "relation"));
  for (const char* part : kParts) {
    files_.push_back(pattern_);
    MILLRACE_ASSIGN_OR_RETURN(files_.back().path, RequireCsv(folder, part));
  }
  return absl::OkStatus();
}

absl::StatusOr<Path> TriplesFolder::NamedFile(const char* part) const {
  for (const char* extension :
       {".txt", ".txt.gz", ".tsv", ".tsv.gz", ".csv", ".csv.gz"}) {
    Path path = input_.directory / StrCat(part, extension);
    if (FileExists(path)) return path;
  }
  return absl::NotFoundError(
      StrCat((input_.directory / StrCat(part, ".txt")).string(),
             ": no such file (nor .tsv, .csv or .gz), and no folder split/ "
             "beside it"));
}

absl::Status TriplesFolder::FindNamed() {
  if (!input_.split.empty()) {
    return InvalidField(
        {.field = "split",
         .value = input_.split,
         .limit = StrCat(input_.directory.string(), " has no folder split/")});
  }
  pattern_.entities = std::make_shared<Numbering>("entity");
  pattern_.relations = std::make_shared<Numbering>("relation");
  for (const char* part : kParts) {
    files_.push_back(pattern_);
    MILLRACE_ASSIGN_OR_RETURN(files_.back().path, NamedFile(part));
    MILLRACE_ASSIGN_OR_RETURN(files_.back().separator,
                              FindSeparator(files_.back().path));
  }
  return absl::OkStatus();
}

absl::Status TriplesFolder::CheckCounts() const {
  if (files_[0].rows == 0) {
    return absl::InvalidArgumentError(
        StrCat(files_[0].path.string(), ": no triples, so there is no graph"));
  }
  const int64_t types =
      pattern_.relations->count() * (input_.reciprocal ? 2 : 1);
  if (types <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(types, " relations; edge types have 32 bits"));
}

absl::StatusOr<RawGraph> TriplesFolder::Graph() const {
  const TripleFile& train = files_[0];
  RawGraph graph;
  graph.nodes.push_back({.name = std::string(kHomogeneousType),
                         .count = pattern_.entities->count()});
  RawEdges edges{.src = 0, .name = "to", .dst = 0};
  edges.endpoints = TripleRows(train, kHeadTail);
  edges.type = TripleRows(train, kRelation);
  if (input_.reciprocal) {
    TripleView reciprocal = kRelation;
    reciprocal.offset = pattern_.relations->count();
    MILLRACE_ASSIGN_OR_RETURN(
        edges.endpoints,
        ConcatenateRows(train.path.string(),
                        {edges.endpoints, TripleRows(train, kTailHead)}));
    MILLRACE_ASSIGN_OR_RETURN(
        edges.type,
        ConcatenateRows(train.path.string(),
                        {edges.type, TripleRows(train, reciprocal)}));
  }
  graph.edges.push_back(std::move(edges));
  for (size_t i = 0; i < files_.size(); ++i) {
    RawEdgeSplit split{.edges = 0, .name = kParts[i]};
    split.endpoints = TripleRows(files_[i], kHeadTail);
    split.type = TripleRows(files_[i], kRelation);
    if (i == 0) split.first_edge = 0;
    graph.edge_splits.push_back(std::move(split));
  }
  if (!numbered_) {
    graph.names = {{"entities.txt", pattern_.entities->names()},
                   {"relations.txt", pattern_.relations->names()}};
  }
  return graph;
}

}  // namespace

absl::StatusOr<RawGraph> OpenTriples(const TriplesInput& input) {
  return TriplesFolder(input).Describe();
}

}  // namespace millrace
