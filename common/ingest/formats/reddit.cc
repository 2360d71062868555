// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/reddit.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/array.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/schema.h"
#include "common/table/npy_rows.h"
#include "common/table/npz_rows.h"

namespace millrace {
namespace {

constexpr const char* kSplitNames[] = {"train", "valid", "test"};

// The elements of a compressed sparse matrix as edges. List i consists of
// indices[indptr[i]] to indices[indptr[i + 1] - 1].
class CompressedEdges final : public RowSource {
 public:
  // If `by_row`, the lists are rows, that is, sources (CSR); otherwise columns
  // (CSC).
  CompressedEdges(std::shared_ptr<const RowSource> indices,
                  std::shared_ptr<const std::vector<int64_t>> indptr,
                  bool by_row)
      : RowSource(indices->name(), 2, indices->rows()),
        indices_(std::move(indices)),
        indptr_(std::move(indptr)),
        by_row_(by_row) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> indices,
                              indices_->Open());
    return std::make_unique<Reader>(std::move(indices), indptr_, by_row_);
  }
  absl::StatusOr<bool> Integral() const override { return true; }
  std::string Where(int64_t row) const override { return indices_->Where(row); }

 private:
  class Reader final : public RowReader {
   public:
    Reader(std::unique_ptr<RowReader> indices,
           std::shared_ptr<const std::vector<int64_t>> indptr, bool by_row)
        : indices_(std::move(indices)),
          indptr_(std::move(indptr)),
          by_row_(by_row) {}

    absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                         int64_t* values) override {
      block_.resize(static_cast<size_t>(max_rows));
      MILLRACE_ASSIGN_OR_RETURN(
          const int64_t rows, indices_->ReadIntegers(max_rows, block_.data()));
      for (int64_t i = 0; i < rows; ++i, ++next_) {
        while ((*indptr_)[list_ + 1] <= next_) ++list_;
        values[2 * i] = by_row_ ? list_ : block_[i];
        values[2 * i + 1] = by_row_ ? block_[i] : list_;
      }
      return rows;
    }
    absl::StatusOr<int64_t> ReadFloats(int64_t, float*) override {
      return absl::InvalidArgumentError("edges are not floats");
    }

   private:
    const std::unique_ptr<RowReader> indices_;
    const std::shared_ptr<const std::vector<int64_t>>
        indptr_;  // shared with it
    const bool by_row_;
    std::vector<int64_t> block_;
    size_t list_ = 0;
    int64_t next_ = 0;
  };

  const std::shared_ptr<const RowSource> indices_;
  // Shared with the readers.
  const std::shared_ptr<const std::vector<int64_t>> indptr_;
  const bool by_row_;
};

absl::Status CheckIndptr(const std::string& name,
                         const std::vector<int64_t>& indptr, int64_t elements) {
  if (indptr.front() == 0 && indptr.back() == elements &&
      std::is_sorted(indptr.begin(), indptr.end())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat(name, ": indptr: its ", indptr.size(),
             " values do not increase from 0 to the ", elements, " indices"));
}

absl::StatusOr<std::shared_ptr<const RowSource>> OpenMatrix(const NpzFile& file,
                                                            int64_t nodes) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                            file.Integers("shape", 2));
  if (shape != std::vector<int64_t>{nodes, nodes}) {
    return absl::InvalidArgumentError(StrCat(
        file.name(), ": the matrix has shape [", absl::StrJoin(shape, ", "),
        "], but there are ", nodes, " nodes"));
  }
  MILLRACE_ASSIGN_OR_RETURN(const std::string format, file.Text("format"));
  if (format == "coo") {
    MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const RowSource> edges,
                              file.Pairs("row", "col"));
    return edges;
  }
  if (format != "csr" && format != "csc") {
    return absl::InvalidArgumentError(StrCat(
        file.name(), ": sparse format \"", format,
        "\"; coo, csr and csc are supported\nconvert it with .tocoo() and "
        "save it again"));
  }
  MILLRACE_ASSIGN_OR_RETURN(std::shared_ptr<const RowSource> indices,
                            file.Rows("indices"));
  MILLRACE_ASSIGN_OR_RETURN(std::vector<int64_t> indptr,
                            file.Integers("indptr", nodes + 1));
  MILLRACE_RETURN_IF_ERROR(CheckIndptr(file.name(), indptr, indices->rows()));
  return std::make_shared<CompressedEdges>(
      std::move(indices),
      std::make_shared<const std::vector<int64_t>>(std::move(indptr)),
      format == "csr");
}

absl::Status AddSplits(const NpzFile& file, RawGraph& graph) {
  const int64_t count = graph.nodes[0].count;
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> types,
                            file.Integers("node_types", count));
  std::vector<std::vector<int64_t>> ids(std::size(kSplitNames));
  for (int64_t node = 0; node < count; ++node) {
    const int64_t type = types[node];
    if (type < 0 || type > 3) {
      return absl::InvalidArgumentError(
          StrCat(file.name(), ": node_types: row ", node, " is ", type,
                 ", but 1 stands for train, 2 for valid, 3 for test, 0 for "
                 "none"));
    }
    if (type > 0) ids[type - 1].push_back(node);
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    RawSplit split{.type = 0, .name = kSplitNames[i]};
    split.ids = ArrayRows(StrCat(file.name(), ": ", kSplitNames[i]),
                          Array::Adopt(std::move(ids[i])));
    graph.splits.push_back(std::move(split));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RawGraph> OpenReddit(const std::filesystem::path& directory,
                                    const ImportOptions& options) {
  MILLRACE_ASSIGN_OR_RETURN(const NpzFile data,
                            NpzFile::Open(directory / "reddit_data.npz"));
  MILLRACE_ASSIGN_OR_RETURN(const NpzFile matrix,
                            NpzFile::Open(directory / "reddit_graph.npz"));
  RawGraph graph;
  RawNodes nodes{.name = std::string(kHomogeneousType)};
  MILLRACE_ASSIGN_OR_RETURN(nodes.feature, data.Rows("feature"));
  MILLRACE_ASSIGN_OR_RETURN(nodes.label, data.Rows("label"));
  nodes.count = nodes.feature->rows();
  graph.nodes.push_back(std::move(nodes));
  RawEdges edges{.name = "to"};
  MILLRACE_ASSIGN_OR_RETURN(edges.endpoints,
                            OpenMatrix(matrix, graph.nodes[0].count));
  graph.edges.push_back(std::move(edges));
  if (!options.makes_splits()) {
    MILLRACE_RETURN_IF_ERROR(AddSplits(data, graph));
  }
  return graph;
}

}  // namespace millrace
