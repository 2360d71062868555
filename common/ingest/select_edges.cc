// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/select_edges.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/array.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/edge_reader.h"

namespace millrace {
namespace {

class EdgePicker {
 public:
  EdgePicker(EdgeSelection selection, const RawEdges& relation)
      : selection_(std::move(selection)),
        timed_(relation.time != nullptr),
        typed_(relation.type != nullptr),
        src_(ids().size()),
        dst_(ids().size()),
        times_(timed_ ? ids().size() : 0),
        types_(typed_ ? ids().size() : 0) {
    if (std::is_sorted(ids().begin(), ids().end())) return;
    order_.resize(ids().size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(),
              [this](size_t a, size_t b) { return ids()[a] < ids()[b]; });
  }

  void Visit(const EdgeChunk& chunk) {
    for (; next_ < ids().size(); ++next_) {
      const int64_t i = ids()[Row()] - chunk.first;
      if (i < 0 || i >= chunk.count) return;
      src_[Row()] = chunk.src(i);
      dst_[Row()] = chunk.dst(i);
      if (timed_) times_[Row()] = chunk.time[i];
      if (typed_) types_[Row()] = static_cast<int32_t>(chunk.type[i]);
    }
  }

  // Must be called after all edges, `count` in total, have been visited.
  absl::StatusOr<EdgeSplitColumns> Finish(int64_t count,
                                          const std::string& relation) {
    if (next_ < ids().size()) return RangeError(count, relation);
    EdgeSplitColumns columns;
    columns.name = selection_.name;
    columns.src = Array::Adopt(std::move(src_));
    columns.dst = Array::Adopt(std::move(dst_));
    columns.edge_id = Array::Adopt(std::move(selection_.ids));
    if (timed_) columns.time = Array::Adopt(std::move(times_));
    if (typed_) columns.edge_type = Array::Adopt(std::move(types_));
    return columns;
  }

 private:
  const std::vector<int64_t>& ids() const { return selection_.ids; }
  // The row of the split to fill next. Rows are filled in ascending order of
  // their ids.
  size_t Row() const { return order_.empty() ? next_ : order_[next_]; }
  absl::Status RangeError(int64_t count, const std::string& relation) const;

  EdgeSelection selection_;
  const bool timed_, typed_;
  std::vector<size_t> order_;  // empty if the ids are ascending
  size_t next_ = 0;
  std::vector<int64_t> src_, dst_, times_;
  std::vector<int32_t> types_;
};

absl::Status EdgePicker::RangeError(int64_t count,
                                    const std::string& relation) const {
  const auto row = static_cast<int64_t>(Row());
  return absl::InvalidArgumentError(EdgeIdRangeText(
      selection_.source != nullptr ? selection_.source->Where(row)
                                   : StrCat("seed ", row),
      ids()[row], relation, count));
}

}  // namespace

std::string EdgeIdRangeText(const std::string& where, int64_t id,
                            const std::string& relation, int64_t count) {
  return StrCat(where, ": edge id ", id, " is out of range: ", relation,
                " has ", count, " edges, ids are 0 to ", count - 1);
}

RawEdges WithoutWeights(const RawEdges& relation) {
  RawEdges slim = relation;
  slim.weight = nullptr;
  slim.feature = nullptr;
  return slim;
}

absl::StatusOr<std::vector<EdgeSplitColumns>> SelectEdges(
    const RawGraph& graph, const RawEdges& relation,
    std::vector<EdgeSelection> selections) {
  std::vector<EdgePicker> pickers;
  for (EdgeSelection& selection : selections) {
    pickers.emplace_back(std::move(selection), relation);
  }
  const RawEdges slim = WithoutWeights(relation);
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<EdgeReader> reader,
                            EdgeReader::Open(graph, slim));
  EdgeChunk chunk;
  int64_t count = 0;
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(const bool more, reader->Next(chunk));
    if (!more) break;
    for (EdgePicker& picker : pickers) picker.Visit(chunk);
    count += chunk.count;
  }
  std::vector<EdgeSplitColumns> splits;
  for (EdgePicker& picker : pickers) {
    MILLRACE_ASSIGN_OR_RETURN(
        EdgeSplitColumns columns,
        picker.Finish(count, graph.RelationName(relation)));
    splits.push_back(std::move(columns));
  }
  return splits;
}

}  // namespace millrace
