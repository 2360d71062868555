// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ingest/raw_graph.h"
#include "common/table/row_source.h"

namespace millrace {

// Consecutive edges with their columns; columns that do not exist are empty.
struct EdgeChunk {
  int64_t first = 0;  // position in the user's edge list
  int64_t count = 0;
  std::vector<int64_t> endpoints;  // source, destination, source, ...
  std::vector<float> weight;
  std::vector<int64_t> time;
  std::vector<int64_t> type;  // each fits in 32 bits
  std::vector<float> feature;

  int64_t src(int64_t i) const { return endpoints[2 * i]; }
  int64_t dst(int64_t i) const { return endpoints[2 * i + 1]; }
};

// Reads the columns of a relation side by side and checks their values.
// Not thread-safe. `graph` and `relation` must outlive it.
class EdgeReader {
 public:
  static absl::StatusOr<std::unique_ptr<EdgeReader>> Open(
      const RawGraph& graph, const RawEdges& relation);

  // Fills in the next edges, or returns false at the end. INVALID_ARGUMENT: an
  // id that its node type does not have, a weight or feature that is not
  // finite, a weight that is negative or underflows to 0 as a float, an edge
  // type that exceeds 32 bits, columns of different lengths, or a count that
  // differs from the declared one. Also the errors of RowReader.
  absl::StatusOr<bool> Next(EdgeChunk& chunk);

 private:
  // A column and its reader, both null if the relation does not have it.
  struct Column {
    const RowSource* source = nullptr;
    std::unique_ptr<RowReader> reader;
  };

  EdgeReader(const RawGraph& graph, const RawEdges& relation)
      : graph_(graph), relation_(relation) {}
  static absl::Status OpenColumn(const std::shared_ptr<const RowSource>& source,
                                 Column& column);
  absl::Status CheckIds(const EdgeChunk& chunk) const;
  absl::Status ReadWeights(EdgeChunk& chunk);
  absl::Status WeightError(int64_t edge, double weight) const;
  absl::Status IdError(int64_t edge, int64_t id, bool is_src) const;
  absl::Status CheckEnd();
  absl::Status ReadColumn(Column& column, EdgeChunk& chunk,
                          std::vector<float>& values);
  absl::Status ReadColumn(Column& column, EdgeChunk& chunk,
                          std::vector<int64_t>& values);
  absl::Status TooShort(const Column& column, int64_t rows) const;

  const RawGraph& graph_;
  const RawEdges& relation_;
  Column endpoints_, weight_, time_, type_, feature_;
  std::vector<double> weights_;  // weights of the chunk being read
  int64_t next_ = 0;
};

}  // namespace millrace
