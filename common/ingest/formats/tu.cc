// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/tu.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/base/array.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/graph/schema.h"
#include "common/table/computed_rows.h"
#include "common/table/csv_rows.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

using Path = std::filesystem::path;
using SourcePtr = std::shared_ptr<const RowSource>;

constexpr TypeIndex kNodeType = 0;
constexpr TypeIndex kGraphType = 1;

// What the numbers in a file mean: a `kind` ("node") numbered from 1 to
// `count`, which is the number of lines of the file `counted_by`.
struct IdRange {
  std::string kind;
  int64_t count = 0;
  std::string counted_by;
};

// The file's numbers, which count from 1, as ids from 0.
class IdRows final : public RowSource {
 public:
  IdRows(SourcePtr file, IdRange range)
      : RowSource(file->name(), file->width(), file->rows()),
        file_(std::move(file)),
        range_(std::move(range)) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, file_->Open());
    return std::make_unique<Reader>(file_, std::move(reader), range_);
  }
  absl::StatusOr<bool> Integral() const override { return true; }
  std::string Where(int64_t row) const override { return file_->Where(row); }

 private:
  class Reader final : public RowReader {
   public:
    Reader(SourcePtr file, std::unique_ptr<RowReader> reader, IdRange range)
        : file_(std::move(file)),
          reader_(std::move(reader)),
          range_(std::move(range)) {}

    absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                         int64_t* values) override {
      MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                                reader_->ReadIntegers(max_rows, values));
      for (int64_t i = 0; i < rows * file_->width(); ++i) {
        if (values[i] < 1 || values[i] > range_.count) {
          return RangeError(next_ + i / file_->width(), values[i]);
        }
        --values[i];
      }
      next_ += rows;
      return rows;
    }
    absl::StatusOr<int64_t> ReadFloats(int64_t, float*) override {
      return absl::InvalidArgumentError(StrCat(
          file_->name(), ": numbers of ", range_.kind, "s are not floats"));
    }

   private:
    absl::Status RangeError(int64_t row, int64_t value) const {
      return absl::InvalidArgumentError(
          StrCat(file_->Where(row), ": ", range_.kind, " ", value,
                 " is out of range: ", range_.counted_by, " has ", range_.count,
                 " lines, ", range_.kind, "s are 1 to ", range_.count));
    }

    const SourcePtr file_;
    const std::unique_ptr<RowReader> reader_;
    const IdRange range_;
    int64_t next_ = 0;
  };

  const SourcePtr file_;
  const IdRange range_;
};

// Number of rows to read at once; fewer if a line has many numbers.
int64_t BlockRows(const RowSource& source) {
  return std::max<int64_t>(kBlockRows / source.width(), 1);
}

template <typename Visit>
absl::Status ForEachBlock(const RowSource& source, Visit visit) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source.Open());
  const int64_t block_rows = BlockRows(source);
  std::vector<int64_t> block(static_cast<size_t>(block_rows * source.width()));
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              reader->ReadIntegers(block_rows, block.data()));
    if (rows == 0) return absl::OkStatus();
    visit(block.data(), rows);
  }
}

absl::StatusOr<std::vector<int64_t>> ReadAll(const RowSource& source) {
  std::vector<int64_t> values;
  MILLRACE_RETURN_IF_ERROR(
      ForEachBlock(source, [&](const int64_t* block, int64_t rows) {
        values.insert(values.end(), block, block + rows * source.width());
      }));
  return values;
}

std::vector<int64_t> Distinct(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

int64_t PlaceOf(int64_t value, const std::vector<int64_t>& distinct) {
  return std::lower_bound(distinct.begin(), distinct.end(), value) -
         distinct.begin();
}

// The file's edges after --undirected, --self-loops and --coalesce, as
// (destination, source).
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

void AppendChanged(const int64_t* block, int64_t rows,
                   const ImportOptions& options, Pairs& pairs) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t src = block[2 * i], dst = block[2 * i + 1];
    const bool loop = src == dst;
    if (loop && options.self_loops == SelfLoops::kRemove) continue;
    pairs.emplace_back(dst, src);
    if (options.undirected && !loop) pairs.emplace_back(src, dst);
  }
}

class TuFolder {
 public:
  TuFolder(const TuInput& input, const ImportOptions& options)
      : input_(input), options_(options) {}

  absl::StatusOr<RawGraph> Describe() {
    MILLRACE_RETURN_IF_ERROR(FindName());
    MILLRACE_RETURN_IF_ERROR(AddNodes());
    MILLRACE_RETURN_IF_ERROR(AddGraphs());
    MILLRACE_RETURN_IF_ERROR(AddEdges());
    MILLRACE_RETURN_IF_ERROR(AddMembership());
    MILLRACE_ASSIGN_OR_RETURN(graph_.nodes[kNodeType].feature, Features());
    return std::move(graph_);
  }

 private:
  absl::Status FindName();
  std::optional<Path> Find(std::string_view part) const;
  absl::StatusOr<SourcePtr> Optional(std::string_view part) const;
  absl::StatusOr<SourcePtr> Required(std::string_view part,
                                     int64_t width) const;
  absl::Status AddNodes();
  absl::Status AddGraphs();
  absl::Status AddEdges();
  absl::Status AddMembership();
  absl::Status CheckMembership(const std::vector<int64_t>& graph_of) const;
  absl::StatusOr<SourcePtr> Features() const;
  absl::StatusOr<SourcePtr> Degrees() const;
  absl::StatusOr<SourcePtr> OneHotLabels(const RowSource& file) const;

  const TuInput& input_;
  const ImportOptions& options_;
  std::string name_;  // the DS of the file names
  std::string indicator_name_, labels_name_;
  RawGraph graph_;
};

absl::Status TuFolder::FindName() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(input_.directory, error)) {
    const std::string file = entry.path().filename();
    for (const std::string_view ending : {"_A.txt", "_A.txt.gz"}) {
      if (!absl::EndsWith(file, AbslView(ending))) continue;
      names.push_back(file.substr(0, file.size() - ending.size()));
    }
  }
  if (error) {
    return absl::NotFoundError(StrCat(input_.directory.string(),
                                      ": no such folder: ", error.message()));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.empty()) {
    return absl::NotFoundError(
        StrCat(input_.directory.string(),
               ": no file DS_A.txt or DS_A.txt.gz for any DS\ngive the "
               "folder that has the files of one collection"));
  }
  if (names.size() > 1) {
    return absl::InvalidArgumentError(
        StrCat(input_.directory.string(), ": ", names.size(),
               " collections in one folder: ", absl::StrJoin(names, ", "),
               "\ngive each its own folder"));
  }
  name_ = names[0];
  return absl::OkStatus();
}

std::optional<Path> TuFolder::Find(std::string_view part) const {
  for (const char* ending : {".txt.gz", ".txt"}) {
    Path path = input_.directory / StrCat(name_, "_", part, ending);
    if (FileExists(path)) return path;
  }
  return std::nullopt;
}

// Null if there is no such file.
absl::StatusOr<SourcePtr> TuFolder::Optional(std::string_view part) const {
  const std::optional<Path> path = Find(part);
  if (!path.has_value()) return SourcePtr();
  MILLRACE_ASSIGN_OR_RETURN(SourcePtr rows, OpenCsvRows(*path));
  return rows;
}

absl::StatusOr<SourcePtr> TuFolder::Required(std::string_view part,
                                             int64_t width) const {
  const std::optional<Path> path = Find(part);
  if (!path.has_value()) {
    return absl::NotFoundError(
        StrCat((input_.directory / StrCat(name_, "_", part, ".txt")).string(),
               ": no such file, with or without .gz"));
  }
  MILLRACE_ASSIGN_OR_RETURN(SourcePtr rows, OpenCsvRows(*path, width));
  return rows;
}

// There are as many nodes as the indicator file has lines.
absl::Status TuFolder::AddNodes() {
  MILLRACE_ASSIGN_OR_RETURN(const SourcePtr file,
                            Required("graph_indicator", 1));
  indicator_name_ = file->name();
  RawNodes nodes{.name = std::string(kHomogeneousType)};
  MILLRACE_RETURN_IF_ERROR(ForEachBlock(
      *file, [&](const int64_t*, int64_t rows) { nodes.count += rows; }));
  graph_.nodes.push_back(std::move(nodes));
  return absl::OkStatus();
}

// There are as many graphs as labels.
absl::Status TuFolder::AddGraphs() {
  RawNodes graphs{.name = "graph"};
  if (Find("graph_labels").has_value() || !Find("graph_attributes")) {
    MILLRACE_ASSIGN_OR_RETURN(const SourcePtr file,
                              Required("graph_labels", 1));
    MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> labels, ReadAll(*file));
    const std::vector<int64_t> classes = Distinct(labels);
    for (int64_t& label : labels) label = PlaceOf(label, classes);
    graphs.count = static_cast<int64_t>(labels.size());
    graphs.label = ArrayRows(file->name(), Array::Adopt(std::move(labels)));
  } else {
    MILLRACE_ASSIGN_OR_RETURN(graphs.label, Required("graph_attributes", 0));
    MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader,
                              graphs.label->Open());
    const int64_t block_rows = BlockRows(*graphs.label);
    std::vector<float> block(
        static_cast<size_t>(block_rows * graphs.label->width()));
    for (int64_t rows = block_rows; rows == block_rows; graphs.count += rows) {
      MILLRACE_ASSIGN_OR_RETURN(rows,
                                reader->ReadFloats(block_rows, block.data()));
    }
  }
  labels_name_ = graphs.label->name();
  graph_.nodes.push_back(std::move(graphs));
  return absl::OkStatus();
}

absl::Status TuFolder::AddEdges() {
  RawEdges edges{.src = kNodeType, .name = "to", .dst = kNodeType};
  MILLRACE_ASSIGN_OR_RETURN(SourcePtr file, Required("A", 2));
  edges.endpoints = std::make_shared<IdRows>(
      std::move(file),
      IdRange{"node", graph_.nodes[kNodeType].count, indicator_name_});
  MILLRACE_ASSIGN_OR_RETURN(edges.type, Optional("edge_labels"));
  MILLRACE_ASSIGN_OR_RETURN(edges.feature, Optional("edge_attributes"));
  graph_.edges.push_back(std::move(edges));
  return absl::OkStatus();
}

absl::Status TuFolder::AddMembership() {
  MILLRACE_ASSIGN_OR_RETURN(SourcePtr file, Required("graph_indicator", 1));
  const IdRows ids(
      std::move(file),
      IdRange{"graph", graph_.nodes[kGraphType].count, labels_name_});
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> graph_of, ReadAll(ids));
  MILLRACE_RETURN_IF_ERROR(CheckMembership(graph_of));
  const auto count = static_cast<int64_t>(graph_of.size());
  RawEdges edges{.src = kNodeType, .name = "in", .dst = kGraphType};
  edges.endpoints = std::make_shared<ComputedRows<int64_t>>(
      ids.name(), 2, count,
      [graphs = std::move(graph_of)](int64_t node, int64_t* out) {
        out[0] = node;
        out[1] = graphs[node];
      });
  graph_.edges.push_back(std::move(edges));
  return absl::OkStatus();
}

// A graph's batch consists of its nodes and the edges among them, so an edge
// between two graphs would not be in any batch.
absl::Status TuFolder::CheckMembership(
    const std::vector<int64_t>& graph_of) const {
  const RowSource& edges = *graph_.edges[0].endpoints;
  absl::Status status;
  int64_t first = 0;
  MILLRACE_RETURN_IF_ERROR(
      ForEachBlock(edges, [&](const int64_t* block, int64_t rows) {
        for (int64_t i = 0; i < rows && status.ok(); ++i) {
          const int64_t src = block[2 * i], dst = block[2 * i + 1];
          if (graph_of[src] == graph_of[dst]) continue;
          status = absl::InvalidArgumentError(StrCat(
              edges.Where(first + i), ": node ", src + 1, " belongs to graph ",
              graph_of[src] + 1, ", node ", dst + 1, " to graph ",
              graph_of[dst] + 1, " (", indicator_name_,
              ")\nboth ends of an edge must be in the same graph: correct "
              "either file"));
        }
        first += rows;
      }));
  return status;
}

absl::StatusOr<SourcePtr> TuFolder::Features() const {
  TuFeatures features = input_.features;
  if (features == TuFeatures::kDefault) {
    features = Find("node_labels") ? TuFeatures::kLabels : TuFeatures::kOnes;
  }
  switch (features) {
    case TuFeatures::kDegree:
      return Degrees();
    case TuFeatures::kLabels: {
      MILLRACE_ASSIGN_OR_RETURN(const SourcePtr file,
                                Required("node_labels", 0));
      return OneHotLabels(*file);
    }
    case TuFeatures::kAttributes:
      return Required("node_attributes", 0);
    case TuFeatures::kOnes:
    case TuFeatures::kDefault:
      break;
  }
  return std::make_shared<ComputedRows<float>>(
      "ones", 1, graph_.nodes[kNodeType].count,
      [](int64_t, float* out) { *out = 1; });
}

absl::StatusOr<SourcePtr> TuFolder::Degrees() const {
  if (!options_.edge_split_fractions.empty() &&
      options_.edge_split_by == EdgeSplitBy::kRandom) {
    return WithAdvice(
        InvalidField({.field = "node_features",
                      .value = "degree",
                      .limit = "counts the edges that are held out of "
                               "the graph"}),
        "divide the edges by time, or use other features");
  }
  const int64_t count = graph_.nodes[kNodeType].count;
  Pairs pairs;
  MILLRACE_RETURN_IF_ERROR(ForEachBlock(
      *graph_.edges[0].endpoints, [&](const int64_t* block, int64_t rows) {
        AppendChanged(block, rows, options_, pairs);
      }));
  if (options_.coalesce) {
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  }
  const bool adds = options_.self_loops == SelfLoops::kAdd;
  std::vector<int64_t> degrees(static_cast<size_t>(count), 0);
  std::vector<bool> lacks_loop(static_cast<size_t>(count), adds);
  for (const auto& [dst, src] : pairs) {
    ++degrees[dst];
    if (src == dst) lacks_loop[dst] = false;
  }
  for (int64_t node = 0; node < count; ++node) {
    if (lacks_loop[node]) ++degrees[node];
  }
  const int64_t largest =
      count > 0 ? *std::max_element(degrees.begin(), degrees.end()) : 0;
  return std::make_shared<ComputedRows<float>>(
      "degrees", largest + 1, count,
      [degrees = std::move(degrees), largest](int64_t node, float* out) {
        std::fill(out, out + largest + 1, 0.0f);
        out[degrees[node]] = 1;
      });
}

// One feature for each value that occurs in a column, one column after the
// other.
absl::StatusOr<SourcePtr> TuFolder::OneHotLabels(const RowSource& file) const {
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> labels, ReadAll(file));
  const int64_t columns = file.width();
  const auto count = static_cast<int64_t>(labels.size()) / columns;
  int64_t width = 0;
  for (int64_t column = 0; column < columns; ++column) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(labels[i * columns + column]);
    }
    values = Distinct(std::move(values));
    for (int64_t i = 0; i < count; ++i) {
      int64_t& label = labels[i * columns + column];
      label = width + PlaceOf(label, values);
    }
    width += static_cast<int64_t>(values.size());
  }
  return std::make_shared<ComputedRows<float>>(
      file.name(), std::max<int64_t>(width, 1), count,
      [places = std::move(labels), columns, width](int64_t node, float* out) {
        std::fill(out, out + width, 0.0f);
        for (int64_t i = 0; i < columns; ++i) {
          out[places[node * columns + i]] = 1;
        }
      });
}

}  // namespace

absl::StatusOr<RawGraph> OpenTu(const TuInput& input,
                                const ImportOptions& options) {
  return TuFolder(input, options).Describe();
}

}  // namespace millrace
