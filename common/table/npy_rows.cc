// SPDX-License-Identifier: Apache-2.0
#include "common/table/npy_rows.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/table/npy_tensor.h"
#include "common/table/tensor_rows.h"

namespace millrace {
namespace {

bool IsMask(const StoredTensor& tensor) {
  return tensor.format.type == ElementType::kBool;
}

// The positions at which a mask is true. The mask must have one element for
// each of the `count` `things`; if `count` is negative, any number.
absl::StatusOr<std::unique_ptr<RowSource>> MaskRows(const std::string& name,
                                                    const StoredTensor& mask,
                                                    int64_t count,
                                                    std::string_view things) {
  if (mask.sizes.size() != 1) {
    return absl::InvalidArgumentError(StrCat(name, ": a bool array of shape ",
                                             ShapeText(mask.sizes),
                                             ", but a mask has one dimension"));
  }
  const int64_t size = mask.sizes[0];
  if (count >= 0 && size != count) {
    return absl::InvalidArgumentError(StrCat(
        name, ": a mask of ", size, " elements for ", count, " ", things));
  }
  std::vector<int64_t> selected;
  for (int64_t i = 0; i < size; ++i) {
    if (mask.data[i * mask.strides[0]] != 0) selected.push_back(i);
  }
  return ArrayRows(name, Array::Adopt(std::move(selected)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyRows(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor, MapNpyTensor(path));
  return TensorRows(path.string(), std::move(tensor));
}

std::unique_ptr<RowSource> ArrayRows(std::string name, Array array) {
  StoredTensor tensor;
  tensor.format.type = ElementTypeOf(array.dtype());
  tensor.sizes = array.shape();
  tensor.strides = {tensor.sizes.size() == 2 ? tensor.sizes[1] : 1, 1};
  tensor.strides.resize(tensor.sizes.size());
  tensor.data = reinterpret_cast<const char*>(array.data());
  tensor.owner = std::make_shared<const Array>(std::move(array));
  auto rows = TensorRows(std::move(name), std::move(tensor));
  MILLRACE_CHECK(rows.ok());
  return *std::move(rows);
}

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdges(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor, MapNpyTensor(path));
  MILLRACE_ASSIGN_OR_RETURN(
      const bool columns,
      EdgesAreColumns(path.string(), tensor.format.type, tensor.sizes));
  if (columns) {
    std::swap(tensor.sizes[0], tensor.sizes[1]);
    std::swap(tensor.strides[0], tensor.strides[1]);
  }
  return TensorRows(path.string(), std::move(tensor), "edge");
}

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyIds(
    const std::filesystem::path& path, int64_t node_count) {
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor ids, MapNpyTensor(path));
  MILLRACE_RETURN_IF_ERROR(RequireIntegers(path.string(), ids.format.type));
  if (IsMask(ids)) return MaskRows(path.string(), ids, node_count, "nodes");
  if (ids.sizes.size() != 1) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": shape ", ShapeText(ids.sizes),
               ", but a list of ids has one dimension"));
  }
  return TensorRows(path.string(), std::move(ids));
}

absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdgeSeeds(
    const std::filesystem::path& path, int64_t edge_count) {
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor seeds, MapNpyTensor(path));
  MILLRACE_RETURN_IF_ERROR(RequireIntegers(path.string(), seeds.format.type));
  if (IsMask(seeds)) return MaskRows(path.string(), seeds, edge_count, "edges");
  const std::vector<int64_t>& sizes = seeds.sizes;
  if (sizes.size() != 1 && (sizes.size() != 2 || sizes[1] != 2)) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": shape ", ShapeText(sizes),
               ", but edges are given by pairs of nodes [n, 2] or by edge ids "
               "[n]"));
  }
  return TensorRows(path.string(), std::move(seeds));
}

absl::StatusOr<Array> ReadNpyIntegers(const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(StoredTensor tensor, MapNpyTensor(path));
  if (!IsInteger(tensor.format.type) || tensor.sizes.empty() ||
      tensor.sizes.size() > 2) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), " holds ", ElementName(tensor.format.type), " (",
               absl::StrJoin(tensor.sizes, ", "),
               "); it must be integers of one or two dimensions"));
  }
  Array values = Array::Allocate(DType::kInt64, tensor.sizes);
  if (values.element_count() == 0) return values;
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> rows,
                            TensorRows(path.string(), std::move(tensor)));
  MILLRACE_ASSIGN_OR_RETURN(const std::unique_ptr<RowReader> reader,
                            rows->Open());
  MILLRACE_RETURN_IF_ERROR(
      reader->ReadIntegers(rows->rows(), values.MutableAs<int64_t>().data())
          .status());
  return values;
}

}  // namespace millrace
