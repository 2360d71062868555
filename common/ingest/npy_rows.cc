// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/npy_rows.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/array.h"
#include "common/base/npy.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/elements.h"

namespace millrace {
namespace {

// Where the elements of a row are: element (r, c) at r * row_step + c *
// column_step, in elements.
struct Layout {
  int64_t rows = 0;
  int64_t width = 1;
  int64_t row_step = 1;
  int64_t column_step = 1;
};

class NpyReader final : public RowReader {
 public:
  NpyReader(std::string name, Array array, Layout layout)
      : name_(std::move(name)), array_(std::move(array)), layout_(layout) {
    AdviseAccess(array_, Access::kSequential);
  }

  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    MILLRACE_RETURN_IF_ERROR(RequireIntegers(name_, array_.dtype()));
    const int64_t first = row_;
    const int64_t rows = Copy<int64_t>(max_rows, values);
    MILLRACE_RETURN_IF_ERROR(RefuseLargeIntegers(name_, array_.dtype(), first,
                                                 values, rows, layout_.width));
    return rows;
  }

  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return Copy<float>(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows,
                                      double* values) override {
    return Copy<double>(max_rows, values);
  }

 private:
  template <typename To>
  int64_t Copy(int64_t max_rows, To* values) {
    const int64_t rows = std::min(max_rows, layout_.rows - row_);
    WithElementType(array_.dtype(), [&]<typename From>(From) {
      const auto* data = reinterpret_cast<const From*>(array_.data());
      CopyRows(data, rows, values);
    });
    Drop(rows);
    row_ += rows;
    return rows;
  }

  template <typename From, typename To>
  void CopyRows(const From* data, int64_t rows, To* values) {
    const bool dense = layout_.row_step == layout_.width;
    if (std::is_same_v<From, To> && dense) {
      if (rows == 0) return;
      std::memcpy(values, data + row_ * layout_.row_step,
                  static_cast<size_t>(rows * layout_.width) * sizeof(To));
      return;
    }
    for (int64_t column = 0; column < layout_.width; ++column) {
      const From* from =
          data + row_ * layout_.row_step + column * layout_.column_step;
      To* to = values + column;
      for (int64_t row = 0; row < rows; ++row) {
        *to = ConvertElement<To>(*from);
        from += layout_.row_step;
        to += layout_.width;
      }
    }
  }

  // Gives back the pages behind the reading position.
  void Drop(int64_t rows) {
    if (layout_.row_step >= layout_.width && layout_.column_step == 1) {
      DropRows(array_, row_, row_ + rows);
      return;
    }
    for (int64_t column = 0; column < layout_.width; ++column) {
      const int64_t start = column * layout_.column_step;
      const Array line =
          Array::Borrow(array_.dtype(), {layout_.rows},
                        array_.data() + static_cast<size_t>(start) *
                                            ItemBytes(array_.dtype()),
                        nullptr);
      DropRows(line, row_, row_ + rows);
    }
  }

  const std::string name_;
  const Array array_;
  const Layout layout_;
  int64_t row_ = 0;
};

class NpySource final : public RowSource {
 public:
  NpySource(std::string name, std::string_view unit, Array array, Layout layout)
      : RowSource(std::move(name), layout.width, layout.rows),
        unit_(unit),
        array_(std::move(array)),
        layout_(layout) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    return std::make_unique<NpyReader>(name(), array_, layout_);
  }
  absl::StatusOr<bool> Integral() const override {
    return IsIntegerDType(array_.dtype());
  }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": ", unit_, " ", row);
  }

 private:
  const std::string unit_;
  const Array array_;
  const Layout layout_;
};

std::string ShapeText(const std::vector<int64_t>& shape) {
  return StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// The elements of a one-dimensional bool file; nothing when it has another
// dtype. NumPy's bool is no dtype of stores, so the header is read here.
absl::StatusOr<std::optional<std::vector<uint8_t>>> ReadBools(
    const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(StrCat(path.string(), ": no such file"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string start(4096, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  const size_t descr = start.find("'|b1'");
  if (descr == std::string::npos) return std::nullopt;
  start.replace(descr, 5, "'|u1'");
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(start);
  if (!header.ok()) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": ", header.status().message()));
  }
  const uint64_t data_bytes =
      std::filesystem::file_size(path, error) - header->data_offset;
  if (header->shape.size() != 1 ||
      static_cast<uint64_t>(header->shape[0]) != data_bytes) {
    return absl::InvalidArgumentError(StrCat(
        path.string(), ": a bool array of shape ", ShapeText(header->shape),
        " in ", data_bytes, " bytes; a mask has one dimension"));
  }
  std::vector<uint8_t> values(data_bytes);
  file.clear();
  file.seekg(static_cast<std::streamoff>(header->data_offset));
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(data_bytes));
  if (!file) {
    return absl::DataLossError(StrCat(path.string(), ": read failed"));
  }
  return values;
}

// The places where the bools of a file are true; nothing when it has another
// dtype. There are `count` `things`; -1: any number.
absl::StatusOr<std::optional<Array>> ReadMask(const std::filesystem::path& path,
                                              int64_t count,
                                              std::string_view things) {
  MILLRACE_ASSIGN_OR_RETURN(std::optional<std::vector<uint8_t>> mask,
                            ReadBools(path));
  if (!mask.has_value()) return std::nullopt;
  const auto size = static_cast<int64_t>(mask->size());
  if (count >= 0 && size != count) {
    return absl::InvalidArgumentError(StrCat(path.string(), ": a mask of ",
                                             size, " elements for ", count, " ",
                                             things));
  }
  std::vector<int64_t> selected;
  for (int64_t i = 0; i < size; ++i) {
    if ((*mask)[i] != 0) selected.push_back(i);
  }
  return Array::Adopt(std::move(selected));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyRows(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(Array array, MapNpy(path));
  const std::vector<int64_t>& shape = array.shape();
  if (shape.empty() || shape.size() > 2 || (shape.size() == 2 && !shape[1])) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": shape ", ShapeText(shape),
               ", but one or two dimensions are needed here"));
  }
  if (shape.size() == 2) {
    MILLRACE_RETURN_IF_ERROR(CheckWidth(path.string(), shape[1]));
  }
  return ArrayRows(path.string(), std::move(array));
}

std::unique_ptr<RowSource> ArrayRows(std::string name, Array array) {
  const std::vector<int64_t>& shape = array.shape();
  Layout layout;
  layout.rows = shape[0];
  layout.width = shape.size() == 2 ? shape[1] : 1;
  layout.row_step = layout.width;
  return std::make_unique<NpySource>(std::move(name), "row", std::move(array),
                                     layout);
}

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdges(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(Array array, MapNpy(path));
  MILLRACE_RETURN_IF_ERROR(RequireIntegers(path.string(), array.dtype()));
  const std::vector<int64_t>& shape = array.shape();
  if (shape.size() != 2 || (shape[0] != 2 && shape[1] != 2)) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": shape ", ShapeText(shape),
               ", but an edge list has shape [2, E] (sources, "
               "destinations) or [E, 2]"));
  }
  Layout layout;
  layout.width = 2;
  if (shape[0] == 2) {
    layout.rows = shape[1];
    layout.column_step = shape[1];
  } else {
    layout.rows = shape[0];
    layout.row_step = 2;
  }
  return std::make_unique<NpySource>(path.string(), "edge", std::move(array),
                                     layout);
}

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyIds(
    const std::filesystem::path& path, int64_t node_count) {
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<Array> mask,
                            ReadMask(path, node_count, "nodes"));
  if (mask.has_value()) return ArrayRows(path.string(), *mask);
  MILLRACE_ASSIGN_OR_RETURN(Array ids, MapNpy(path));
  MILLRACE_RETURN_IF_ERROR(RequireIntegers(path.string(), ids.dtype()));
  if (ids.shape().size() != 1) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": shape ", ShapeText(ids.shape()),
               ", but a list of ids has one dimension"));
  }
  return ArrayRows(path.string(), std::move(ids));
}

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdgeSeeds(
    const std::filesystem::path& path, int64_t edge_count) {
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<Array> mask,
                            ReadMask(path, edge_count, "edges"));
  if (mask.has_value()) return ArrayRows(path.string(), *mask);
  MILLRACE_ASSIGN_OR_RETURN(Array seeds, MapNpy(path));
  MILLRACE_RETURN_IF_ERROR(RequireIntegers(path.string(), seeds.dtype()));
  const std::vector<int64_t>& shape = seeds.shape();
  if (shape.size() != 1 && (shape.size() != 2 || shape[1] != 2)) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": shape ", ShapeText(shape),
               ", but edges are given by pairs of nodes [n, 2] or by edge ids "
               "[n]"));
  }
  return ArrayRows(path.string(), std::move(seeds));
}

}  // namespace millrace
