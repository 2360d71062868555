// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/list_writer.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/store.h"
#include "common/graph/weights.h"

namespace millrace {
namespace {

constexpr size_t kBufferBytes = 128 << 10;

}  // namespace

absl::StatusOr<ColumnWriter> ColumnWriter::Create(
    StoreWriter& store, std::string path, DType dtype,
    std::vector<int64_t> row_shape, int64_t rows) {
  ColumnWriter column(store, std::move(path));
  size_t row_bytes = ItemBytes(dtype);
  for (int64_t dimension : row_shape) {
    row_bytes *= static_cast<size_t>(dimension);
  }
  MILLRACE_ASSIGN_OR_RETURN(
      column.writer_,
      store.Open(column.path_, dtype, std::move(row_shape), rows));
  // Holds whole rows, because files are written in whole rows.
  column.buffer_.resize(row_bytes *
                        std::max<size_t>(kBufferBytes / row_bytes, 1));
  return column;
}

absl::Status ColumnWriter::PutBytes(const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const size_t part = std::min(bytes, buffer_.size() - used_);
    std::memcpy(buffer_.data() + used_, from, part);
    used_ += part;
    from += part;
    bytes -= part;
    if (used_ == buffer_.size()) MILLRACE_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::Status ColumnWriter::Flush() {
  const size_t bytes = std::exchange(used_, 0);
  return writer_->Append(buffer_.data(), bytes);
}

absl::Status ColumnWriter::Finish() {
  MILLRACE_RETURN_IF_ERROR(Flush());
  return store_->Close(path_, std::move(writer_));
}

absl::StatusOr<ColumnWriter> ListWriter::Column(StoreWriter& store,
                                                std::string_view name,
                                                DType dtype) {
  return ColumnWriter::Create(
      store,
      ListPath(options_.part, options_.relation, options_.direction, name),
      dtype, {});
}

absl::StatusOr<std::unique_ptr<ListWriter>> ListWriter::Create(
    StoreWriter& store, Options options) {
  std::unique_ptr<ListWriter> lists(new ListWriter(std::move(options)));
  const Options& chosen = lists->options_;
  const EdgeLayout& layout = chosen.layout;
  MILLRACE_ASSIGN_OR_RETURN(lists->indptr_,
                            lists->Column(store, "indptr", DType::kInt64));
  MILLRACE_RETURN_IF_ERROR(lists->indptr_->Put(int64_t{0}));
  MILLRACE_ASSIGN_OR_RETURN(
      lists->indices_, lists->Column(store, "indices", chosen.index_dtype));
  MILLRACE_ASSIGN_OR_RETURN(lists->edge_id_,
                            lists->Column(store, "edge_id", DType::kInt64));
  if (layout.has_weight) {
    MILLRACE_ASSIGN_OR_RETURN(lists->weight_,
                              lists->Column(store, "weight", DType::kFloat32));
    MILLRACE_ASSIGN_OR_RETURN(
        lists->weight_sum_, lists->Column(store, "weight_sum", DType::kUint64));
  }
  if (layout.has_time) {
    MILLRACE_ASSIGN_OR_RETURN(lists->time_,
                              lists->Column(store, "time", DType::kInt64));
  }
  if (layout.has_type) {
    MILLRACE_ASSIGN_OR_RETURN(lists->type_,
                              lists->Column(store, "type", DType::kInt32));
  }
  if (layout.has_slot) {
    MILLRACE_ASSIGN_OR_RETURN(lists->slot_,
                              lists->Column(store, "slot", DType::kInt64));
  }
  if (layout.feature_width > 0) {
    MILLRACE_ASSIGN_OR_RETURN(
        lists->feature_,
        ColumnWriter::Create(store,
                             EdgeFeaturePath(chosen.part, chosen.relation),
                             DType::kFloat32, {layout.feature_width}));
  }
  if (chosen.coalesce) {
    lists->seen_.assign(static_cast<size_t>(chosen.neighbor_count), -1);
  }
  return lists;
}

// Puts the entries [begin, end) into list_ in the order in which to write them,
// leaving out repeated neighbours if asked to.
void ListWriter::OrderList(const EdgeGroup& group, int64_t begin, int64_t end) {
  const auto by_id = [](const Entry& a, const Entry& b) {
    return a.edge_id < b.edge_id;
  };
  const auto by_time = [](const Entry& a, const Entry& b) {
    return std::tie(a.time, a.edge_id) < std::tie(b.time, b.edge_id);
  };
  list_.clear();
  for (int64_t entry = begin; entry < end; ++entry) {
    const EdgeRecord edge = group.Edge(entry);
    list_.push_back({edge.time, edge.edge_id, entry});
  }
  const auto sort = [this](const auto& less) {
    if (std::is_sorted(list_.begin(), list_.end(), less)) return;
    std::sort(list_.begin(), list_.end(), less);
  };
  if (options_.coalesce || !options_.layout.has_time) sort(by_id);
  if (options_.coalesce) {
    std::erase_if(list_, [&](const Entry& entry) {
      const EdgeRecord edge = group.Edge(entry.entry);
      return std::exchange(seen_[edge.neighbor], edge.node) == edge.node;
    });
  }
  if (options_.layout.has_time) sort(by_time);
}

absl::Status ListWriter::PutEdge(const EdgeRecord& edge) {
  if (options_.index_dtype == DType::kUint32) {
    MILLRACE_RETURN_IF_ERROR(
        indices_->Put(static_cast<uint32_t>(edge.neighbor)));
  } else {
    MILLRACE_RETURN_IF_ERROR(
        indices_->Put(static_cast<uint64_t>(edge.neighbor)));
  }
  MILLRACE_RETURN_IF_ERROR(edge_id_->Put(edge.edge_id));
  if (weight_) MILLRACE_RETURN_IF_ERROR(weight_->Put(edge.weight));
  if (time_) MILLRACE_RETURN_IF_ERROR(time_->Put(edge.time));
  if (type_) MILLRACE_RETURN_IF_ERROR(type_->Put(edge.type));
  if (slot_) MILLRACE_RETURN_IF_ERROR(slot_->Put(edge.slot));
  max_edge_id_ = std::max(max_edge_id_, edge.edge_id);
  return absl::OkStatus();
}

absl::Status ListWriter::PutWeightSums(const EdgeGroup& group, int64_t node) {
  if (list_.size() > kMaxWeightedDegree) {
    return absl::InvalidArgumentError(StrCat(
        "node ", node, " has a list of ", list_.size(), " weighted edges of ",
        options_.relation, "; the limit is ", kMaxWeightedDegree));
  }
  list_weights_.clear();
  for (const Entry& entry : list_) {
    list_weights_.push_back(group.Edge(entry.entry).weight);
  }
  const std::vector<uint64_t> sums = WeightSums(list_weights_);
  return weight_sum_->PutBytes(sums.data(), sums.size() * sizeof(uint64_t));
}

absl::Status ListWriter::Write(const EdgeGroup& group,
                               const EdgeObserver& observer) {
  const size_t feature_bytes =
      static_cast<size_t>(options_.layout.feature_width) * sizeof(float);
  for (int64_t node = 0; node < group.end - group.begin; ++node) {
    OrderList(group, group.starts[node], group.starts[node + 1]);
    if (weight_sum_) {
      MILLRACE_RETURN_IF_ERROR(PutWeightSums(group, group.begin + node));
    }
    for (const Entry& entry : list_) {
      const EdgeRecord edge = group.Edge(entry.entry);
      MILLRACE_RETURN_IF_ERROR(PutEdge(edge));
      if (feature_) {
        MILLRACE_RETURN_IF_ERROR(
            feature_->PutBytes(group.Features(entry.entry), feature_bytes));
      }
      if (observer) {
        MILLRACE_RETURN_IF_ERROR(observer(edge, edge_count_));
      }
      ++edge_count_;
    }
    MILLRACE_RETURN_IF_ERROR(indptr_->Put(edge_count_));
  }
  return absl::OkStatus();
}

absl::Status ListWriter::Finish() {
  for (auto* column : {&indptr_, &indices_, &edge_id_, &weight_, &weight_sum_,
                       &time_, &type_, &slot_, &feature_}) {
    if (column->has_value()) MILLRACE_RETURN_IF_ERROR((*column)->Finish());
  }
  return absl::OkStatus();
}

}  // namespace millrace
