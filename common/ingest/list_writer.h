// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/file/npy.h"
#include "common/graph/schema.h"
#include "common/graph/store_writer.h"
#include "common/ingest/edge_buckets.h"

namespace millrace {

// Writes one .npy file of a store value by value. Not thread-safe. The store
// must outlive it.
class ColumnWriter {
 public:
  static absl::StatusOr<ColumnWriter> Create(StoreWriter& store,
                                             std::string path, DType dtype,
                                             std::vector<int64_t> row_shape,
                                             int64_t rows = -1);

  template <typename T>
  absl::Status Put(T value) {
    return PutBytes(&value, sizeof(value));
  }
  // Several calls may make up a row, but Finish() needs whole rows.
  absl::Status PutBytes(const void* data, size_t bytes);
  absl::Status Finish();

 private:
  ColumnWriter(StoreWriter& store, std::string path)
      : store_(&store), path_(std::move(path)) {}
  absl::Status Flush();

  StoreWriter* store_;
  std::string path_;
  std::unique_ptr<NpyWriter> writer_;
  std::vector<std::byte> buffer_;
  size_t used_ = 0;
};

// Writes the neighbour lists of one relation, direction and partition
// (docs/format.md, section 2), given groups of edges in ascending node order.
// Sorts each list by edge_id, or by (time, edge_id) if entries have times.
// Not thread-safe; the store must outlive it.
class ListWriter {
 public:
  struct Options {
    int part = 0;
    std::string relation;  // SRC__NAME__DST
    Direction direction = Direction::kIn;
    EdgeLayout layout;
    DType index_dtype = DType::kUint32;  // id dtype of the neighbours' type
    // Keeps only the entry with the lowest edge_id for each neighbour in a
    // list. Needs 8 bytes of memory for each possible neighbour.
    bool coalesce = false;
    int64_t neighbor_count = 0;
  };
  // Called for every edge that is written, with its position in the files.
  using EdgeObserver =
      std::function<absl::Status(const EdgeRecord& edge, int64_t position)>;

  static absl::StatusOr<std::unique_ptr<ListWriter>> Create(StoreWriter& store,
                                                            Options options);

  absl::Status Write(const EdgeGroup& group, const EdgeObserver& observer);
  absl::Status Finish();

  int64_t edge_count() const { return edge_count_; }
  int64_t max_edge_id() const { return max_edge_id_; }

 private:
  struct Entry {
    int64_t time;
    int64_t edge_id;
    int64_t entry;  // position in the group
  };

  explicit ListWriter(Options options) : options_(std::move(options)) {}
  void OrderList(const EdgeGroup& group, int64_t begin, int64_t end);
  absl::Status PutEdge(const EdgeRecord& edge);
  absl::Status PutWeightSums(const EdgeGroup& group, int64_t node);
  absl::StatusOr<ColumnWriter> Column(StoreWriter& store, std::string_view name,
                                      DType dtype);

  const Options options_;
  std::optional<ColumnWriter> indptr_, indices_, edge_id_;
  std::optional<ColumnWriter> weight_, weight_sum_, time_, type_, slot_;
  std::optional<ColumnWriter> feature_;
  std::vector<Entry> list_;  // the list being written
  std::vector<float> list_weights_;
  std::vector<int64_t> seen_;  // by neighbour, the last node that had it
  int64_t edge_count_ = 0;
  int64_t max_edge_id_ = -1;
};

}  // namespace millrace
