// SPDX-License-Identifier: Apache-2.0
#include "common/partition/partition_nodes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/float_cast.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"

namespace millrace {
namespace {

constexpr uint64_t kRowBytesPerDrop = uint64_t{16} << 20;
constexpr size_t kCastRows = 256;

// Gathers the rows of one column in the order of the new ids, a window of rows
// at a time. Within a window, rows are read in file order.
class RowGatherer {
 public:
  RowGatherer(const Array& source, const IdVector& order, DType dtype,
              uint64_t memory_bytes)
      : source_(source),
        order_(order),
        dtype_(dtype),
        row_bytes_(source.row_bytes()),
        window_rows_(std::max<uint64_t>(
            memory_bytes / (row_bytes_ + sizeof(uint64_t)), 1)) {}

  absl::Status Write(uint64_t begin, uint64_t end, NpyWriter& out) {
    for (uint64_t from = begin; from < end; from += window_rows_) {
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      const uint64_t to = std::min(end, from + window_rows_);
      FillWindow(from, to);
      MILLRACE_RETURN_IF_ERROR(AppendWindow(out));
    }
    return absl::OkStatus();
  }

 private:
  void FillWindow(uint64_t begin, uint64_t end) {
    ids_.resize(end - begin);
    std::iota(ids_.begin(), ids_.end(), begin);
    std::sort(ids_.begin(), ids_.end(),
              [this](uint64_t a, uint64_t b) { return order_[a] < order_[b]; });
    window_.resize(ids_.size() * row_bytes_);
    int64_t dropped = 0;
    for (const uint64_t id : ids_) {
      const auto row = static_cast<int64_t>(order_[id]);
      std::memcpy(window_.data() + (id - begin) * row_bytes_,
                  source_.data() + static_cast<size_t>(row) * row_bytes_,
                  row_bytes_);
      if (static_cast<uint64_t>(row - dropped) * row_bytes_ >
          kRowBytesPerDrop) {
        DropRows(source_, dropped, row);
        dropped = row;
      }
    }
    DropRows(source_, dropped, source_.rows());
  }

  absl::Status AppendWindow(NpyWriter& out) {
    if (dtype_ == source_.dtype()) {
      return out.Append(window_.data(), window_.size());
    }
    const size_t step = kCastRows * row_bytes_;
    const size_t ratio_in = ItemBytes(source_.dtype());
    std::vector<std::byte> cast(step / ratio_in * ItemBytes(dtype_));
    for (size_t at = 0; at < window_.size(); at += step) {
      const size_t bytes = std::min(step, window_.size() - at);
      CastFloats(source_.dtype(), window_.data() + at, dtype_, cast.data(),
                 bytes / ratio_in);
      MILLRACE_RETURN_IF_ERROR(
          out.Append(cast.data(), bytes / ratio_in * ItemBytes(dtype_)));
    }
    return absl::OkStatus();
  }

  const Array& source_;
  const IdVector& order_;
  const DType dtype_;
  const size_t row_bytes_;
  const uint64_t window_rows_;
  std::vector<uint64_t> ids_;  // ids in the window, in file order
  std::vector<std::byte> window_;
};

struct NodeFiles {
  const std::string& type_name;
  const Renumbering& numbers;
  uint64_t memory_bytes;
  StoreWriter& writer;
};

absl::Status WriteColumn(const NodeFiles& files, std::string_view column,
                         const Array& source, DType dtype) {
  if (!source.present()) return absl::OkStatus();
  const PartitionBook& book = files.numbers.book;
  RowGatherer gatherer(source, files.numbers.original_of, dtype,
                       files.memory_bytes);
  const std::vector<int64_t> row_shape(source.shape().begin() + 1,
                                       source.shape().end());
  for (int part = 0; part < book.partition_count(); ++part) {
    const std::string path = NodePath(part, files.type_name, column);
    MILLRACE_ASSIGN_OR_RETURN(
        std::unique_ptr<NpyWriter> out,
        files.writer.Open(
            path, dtype, row_shape,
            static_cast<int64_t>(book.end(part) - book.begin(part))));
    MILLRACE_RETURN_IF_ERROR(
        gatherer.Write(book.begin(part), book.end(part), *out));
    MILLRACE_RETURN_IF_ERROR(files.writer.Close(path, std::move(out)));
  }
  return absl::OkStatus();
}

absl::Status WriteIds(const NodeFiles& files, int part) {
  const Renumbering& numbers = files.numbers;
  const PartitionBook& book = numbers.book;
  MILLRACE_RETURN_IF_ERROR(files.writer.Write(
      NodePath(part, files.type_name, "original_id"),
      numbers.original_of.Slice(book.begin(part), book.end(part))));
  const uint64_t count = book.node_count();
  const uint64_t width = book.lookup_width();
  const uint64_t begin = std::min(count, width * static_cast<uint64_t>(part));
  const uint64_t end = std::min(count, begin + width);
  return files.writer.Write(LookupPath(part, files.type_name),
                            numbers.id_of.Slice(begin, end));
}

absl::Status WriteHotness(const NodeFiles& files, int part,
                          std::span<const float> hotness) {
  const PartitionBook& book = files.numbers.book;
  std::vector<float> sorted;
  sorted.reserve(book.end(part) - book.begin(part));
  for (uint64_t id = book.begin(part); id < book.end(part); ++id) {
    sorted.push_back(hotness[files.numbers.original_of[id]]);
  }
  return files.writer.Write(NodePath(part, files.type_name, "hotness"),
                            Array::Adopt(std::move(sorted)));
}

}  // namespace

absl::Status CheckFeatureCast(std::string_view type_name, DType from,
                              DType to) {
  if (from == DType::kNone || to == DType::kNone || from == to ||
      IsFloat(from)) {
    return absl::OkStatus();
  }
  return WithAdvice(
      FieldStatus(
          absl::StatusCode::kFailedPrecondition,
          {.field = "feature_dtype",
           .value = std::string(DTypeName(to)),
           .limit = StrCat("the features of \"", type_name, "\" are ",
                           DTypeName(from), "; only floats can be converted")}),
      "leave it out, or import the features as float32");
}

absl::Status WriteNodes(const Store& dataset, TypeIndex type,
                        const Renumbering& numbers,
                        std::span<const float> hotness, DType feature_dtype,
                        uint64_t memory_bytes, StoreWriter& writer) {
  const NodeType& described = dataset.schema().node_types[type];
  const NodeColumns& columns = dataset.partition(0)->nodes[type];
  const NodeFiles files{described.name, numbers, memory_bytes, writer};
  const DType dtype =
      feature_dtype == DType::kNone ? columns.feature.dtype() : feature_dtype;
  MILLRACE_RETURN_IF_ERROR(
      CheckFeatureCast(described.name, columns.feature.dtype(), feature_dtype));
  MILLRACE_RETURN_IF_ERROR(
      WriteColumn(files, "feature", columns.feature, dtype));
  MILLRACE_RETURN_IF_ERROR(
      WriteColumn(files, "label", columns.label, columns.label.dtype()));
  MILLRACE_RETURN_IF_ERROR(
      WriteColumn(files, "time", columns.time, columns.time.dtype()));
  for (int part = 0; part < numbers.book.partition_count(); ++part) {
    MILLRACE_RETURN_IF_ERROR(WriteIds(files, part));
    MILLRACE_RETURN_IF_ERROR(WriteHotness(files, part, hotness));
  }
  return absl::OkStatus();
}

}  // namespace millrace
