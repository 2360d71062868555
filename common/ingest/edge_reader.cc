// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/edge_reader.h"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/graph_checks.h"

namespace millrace {
namespace {

constexpr int64_t kChunkEdges = 16 << 10;

}  // namespace

absl::Status EdgeReader::OpenColumn(
    const std::shared_ptr<const RowSource>& source, Column& column) {
  if (source == nullptr) return absl::OkStatus();
  column.source = source.get();
  MILLRACE_ASSIGN_OR_RETURN(column.reader, source->Open());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EdgeReader>> EdgeReader::Open(
    const RawGraph& graph, const RawEdges& relation) {
  std::unique_ptr<EdgeReader> reader(new EdgeReader(graph, relation));
  for (const auto* source :
       {&relation.weight, &relation.time, &relation.type}) {
    if (*source != nullptr && (*source)->width() != 1) {
      return absl::InvalidArgumentError(
          StrCat((*source)->name(), ": ", (*source)->width(),
                 " numbers per row, but an edge needs one"));
    }
  }
  MILLRACE_RETURN_IF_ERROR(OpenColumn(relation.endpoints, reader->endpoints_));
  MILLRACE_RETURN_IF_ERROR(OpenColumn(relation.weight, reader->weight_));
  MILLRACE_RETURN_IF_ERROR(OpenColumn(relation.time, reader->time_));
  MILLRACE_RETURN_IF_ERROR(OpenColumn(relation.type, reader->type_));
  MILLRACE_RETURN_IF_ERROR(OpenColumn(relation.feature, reader->feature_));
  return reader;
}

absl::StatusOr<bool> EdgeReader::Next(EdgeChunk& chunk) {
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  chunk.first = next_;
  chunk.endpoints.resize(2 * kChunkEdges);
  MILLRACE_ASSIGN_OR_RETURN(
      chunk.count,
      endpoints_.reader->ReadIntegers(kChunkEdges, chunk.endpoints.data()));
  next_ += chunk.count;
  if (relation_.declared_count >= 0 && next_ > relation_.declared_count) {
    return absl::InvalidArgumentError(
        StrCat(endpoints_.source->name(), ": more edges than the ",
               relation_.declared_count, " that ", relation_.declared_by,
               " declares"));
  }
  if (chunk.count == 0) {
    MILLRACE_RETURN_IF_ERROR(CheckEnd());
    return false;
  }
  MILLRACE_RETURN_IF_ERROR(CheckIds(chunk));
  MILLRACE_RETURN_IF_ERROR(ReadWeights(chunk));
  MILLRACE_RETURN_IF_ERROR(ReadColumn(time_, chunk, chunk.time));
  MILLRACE_RETURN_IF_ERROR(ReadColumn(type_, chunk, chunk.type));
  MILLRACE_RETURN_IF_ERROR(ReadColumn(feature_, chunk, chunk.feature));
  for (int64_t i = 0; i < chunk.count && !chunk.type.empty(); ++i) {
    if (chunk.type[i] < std::numeric_limits<int32_t>::min() ||
        chunk.type[i] > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(
          StrCat(type_.source->Where(chunk.first + i), ": edge type ",
                 chunk.type[i], " does not fit in 32 bits"));
    }
  }
  return true;
}

absl::Status EdgeReader::CheckIds(const EdgeChunk& chunk) const {
  const auto src_count =
      static_cast<uint64_t>(graph_.nodes[relation_.src].count);
  const auto dst_count =
      static_cast<uint64_t>(graph_.nodes[relation_.dst].count);
  for (int64_t i = 0; i < chunk.count; ++i) {
    // The casts turn negative ids into large numbers, which are out of range
    // too.
    if (static_cast<uint64_t>(chunk.src(i)) >= src_count) {
      return IdError(chunk.first + i, chunk.src(i), true);
    }
    if (static_cast<uint64_t>(chunk.dst(i)) >= dst_count) {
      return IdError(chunk.first + i, chunk.dst(i), false);
    }
  }
  return absl::OkStatus();
}

absl::Status EdgeReader::ReadWeights(EdgeChunk& chunk) {
  if (weight_.source == nullptr) return absl::OkStatus();
  weights_.resize(static_cast<size_t>(chunk.count));
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t rows,
      weight_.reader->ReadDoubles(chunk.count, weights_.data()));
  if (rows < chunk.count) return TooShort(weight_, chunk.first + rows);
  chunk.weight.assign(weights_.begin(), weights_.end());
  for (int64_t i = 0; i < rows; ++i) {
    // A weight above 0 must not become 0, or its edge could never be drawn.
    const bool kept = std::isfinite(chunk.weight[i]) &&
                      (chunk.weight[i] > 0 || weights_[i] == 0);
    if (!kept || weights_[i] < 0) {
      return WeightError(chunk.first + i, weights_[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status EdgeReader::WeightError(int64_t edge, double weight) const {
  std::string_view why =
      "is below the smallest float32 above 0, 1.4e-45\n"
      "scale all weights up: only their ratios matter";
  if (weight < 0) {
    why = "is negative; a weight is 0 or more";
  } else if (!std::isfinite(weight)) {
    why = "is not finite; a weight is 0 or more";
  } else if (weight > 1) {
    why =
        "is above the largest float32, 3.4e+38\n"
        "scale all weights down: only their ratios matter";
  }
  return absl::InvalidArgumentError(
      StrCat(weight_.source->Where(edge), ": weight ", weight, " ", why));
}

absl::Status EdgeReader::IdError(int64_t edge, int64_t id, bool is_src) const {
  const RawNodes& type = graph_.nodes[is_src ? relation_.src : relation_.dst];
  return absl::InvalidArgumentError(StrCat(
      endpoints_.source->Where(edge), ": ", is_src ? "source " : "destination ",
      id, " is out of range: ", NodeRangeText(type)));
}

absl::Status EdgeReader::TooShort(const Column& column, int64_t rows) const {
  return absl::InvalidArgumentError(
      StrCat(column.source->name(), ": ", rows, " rows, but ",
             endpoints_.source->name(), " has at least ", next_,
             " edges; each edge needs a row"));
}

absl::Status EdgeReader::ReadColumn(Column& column, EdgeChunk& chunk,
                                    std::vector<float>& values) {
  if (column.source == nullptr) return absl::OkStatus();
  values.resize(static_cast<size_t>(chunk.count * column.source->width()));
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t rows,
      column.reader->ReadFloats(chunk.count, values.data()));
  if (rows < chunk.count) return TooShort(column, chunk.first + rows);
  return CheckFinite(*column.source, chunk.first, values.data(), rows, false);
}

absl::Status EdgeReader::ReadColumn(Column& column, EdgeChunk& chunk,
                                    std::vector<int64_t>& values) {
  if (column.source == nullptr) return absl::OkStatus();
  values.resize(static_cast<size_t>(chunk.count));
  MILLRACE_ASSIGN_OR_RETURN(
      const int64_t rows,
      column.reader->ReadIntegers(chunk.count, values.data()));
  if (rows < chunk.count) return TooShort(column, chunk.first + rows);
  return absl::OkStatus();
}

// Checks that no column has more rows, and that the number of edges is the
// declared one.
absl::Status EdgeReader::CheckEnd() {
  for (Column* column : {&weight_, &time_, &type_, &feature_}) {
    if (column->source == nullptr) continue;
    std::vector<float> row(static_cast<size_t>(column->source->width()));
    MILLRACE_ASSIGN_OR_RETURN(const int64_t more,
                              column->reader->ReadFloats(1, row.data()));
    if (more == 0) continue;
    return absl::InvalidArgumentError(
        StrCat(column->source->name(), ": more rows than the ", next_,
               " edges of ", endpoints_.source->name()));
  }
  if (relation_.declared_count >= 0 && relation_.declared_count != next_) {
    return absl::InvalidArgumentError(
        StrCat(endpoints_.source->name(), ": ", next_, " edges, but ",
               relation_.declared_by, " declares ", relation_.declared_count));
  }
  return absl::OkStatus();
}

}  // namespace millrace
