// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/node_import.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/store.h"
#include "common/ingest/feature_import.h"
#include "common/ingest/list_writer.h"

namespace millrace {
namespace {

absl::StatusOr<int64_t> Read(RowReader& reader, int64_t rows, int64_t* out) {
  return reader.ReadIntegers(rows, out);
}
absl::StatusOr<int64_t> Read(RowReader& reader, int64_t rows, float* out) {
  return reader.ReadFloats(rows, out);
}

// Calls visit(first row, values, rows) for consecutive blocks of `source`,
// which must have `count` rows.
template <typename T, typename Visit>
absl::Status ForEachBlock(const RowSource& source, int64_t count, Visit visit) {
  if (source.rows() >= 0) {
    MILLRACE_RETURN_IF_ERROR(CheckRowCount(source, source.rows(), count));
  }
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source.Open());
  std::vector<T> values(static_cast<size_t>(kBlockRows * source.width()));
  int64_t done = 0;
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              Read(*reader, kBlockRows, values.data()));
    if (rows == 0) break;
    MILLRACE_RETURN_IF_ERROR(visit(done, values.data(), rows));
    done += rows;
  }
  return CheckRowCount(source, done, count);
}

// Writes original_id or lookup. Both are the identity, since in a dataset ids
// are original ids.
template <typename Id>
absl::Status WriteIdentity(const std::string& path, const NodeType& type,
                           StoreWriter& store) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<NpyWriter> writer,
                            store.Open(path, type.id_dtype(), {}, type.count));
  std::vector<Id> ids(static_cast<size_t>(kBlockRows));
  for (int64_t first = 0; first < type.count; first += kBlockRows) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    std::iota(ids.begin(), ids.end(), static_cast<Id>(first));
    const int64_t rows = std::min(kBlockRows, type.count - first);
    MILLRACE_RETURN_IF_ERROR(
        writer->Append(ids.data(), static_cast<size_t>(rows) * sizeof(Id)));
  }
  return store.Close(path, std::move(writer));
}

absl::Status WriteIds(const NodeType& type, StoreWriter& store) {
  for (const std::string& path :
       {NodePath(0, type.name, "original_id"), LookupPath(0, type.name)}) {
    MILLRACE_RETURN_IF_ERROR(type.id_dtype() == DType::kUint32
                                 ? WriteIdentity<uint32_t>(path, type, store)
                                 : WriteIdentity<uint64_t>(path, type, store));
  }
  return absl::OkStatus();
}

// Writes labels of type T (int64_t or float) and collects the labelled nodes,
// which have a label that is not NaN in at least one column.
template <typename T>
absl::Status WriteLabels(const RowSource& source, ImportedNodes& imported,
                         StoreWriter& store) {
  NodeType& type = imported.type;
  const int64_t width = source.width();
  type.label.dtype = kDTypeOf<T>;
  if (width > 1) type.label.row_shape = {width};
  const std::string path = NodePath(0, type.name, "label");
  MILLRACE_ASSIGN_OR_RETURN(
      ColumnWriter column,
      ColumnWriter::Create(store, path, type.label.dtype, type.label.row_shape,
                           type.count));
  const auto unlabelled = [](T value) {
    return std::isnan(static_cast<float>(value));
  };
  MILLRACE_RETURN_IF_ERROR(ForEachBlock<T>(
      source, type.count,
      [&](int64_t first, const T* values, int64_t rows) -> absl::Status {
        if constexpr (std::is_same_v<T, float>) {
          MILLRACE_RETURN_IF_ERROR(
              CheckFinite(source, first, values, rows, true));
        }
        for (int64_t row = 0; row < rows; ++row) {
          const T* label = values + row * width;
          if (std::all_of(label, label + width, unlabelled)) continue;
          imported.labelled.push_back(first + row);
          if constexpr (std::is_same_v<T, int64_t>) {
            if (width == 1) imported.classes.push_back(*label);
          }
        }
        return column.PutBytes(values,
                               static_cast<size_t>(rows * width) * sizeof(T));
      }));
  return column.Finish();
}

absl::Status ImportLabels(const RowSource& source, ImportedNodes& imported,
                          StoreWriter& store) {
  MILLRACE_ASSIGN_OR_RETURN(const bool integral, source.Integral());
  return integral ? WriteLabels<int64_t>(source, imported, store)
                  : WriteLabels<float>(source, imported, store);
}

absl::Status ImportTimes(const RowSource& source, ImportedNodes& imported,
                         StoreWriter& store) {
  NodeType& type = imported.type;
  if (source.width() != 1) {
    return absl::InvalidArgumentError(
        StrCat(source.name(), ": ", source.width(),
               " numbers per row, but a node has one time"));
  }
  type.has_time = true;
  MILLRACE_RETURN_IF_ERROR(ForEachBlock<int64_t>(
      source, type.count, [&](int64_t, const int64_t* values, int64_t rows) {
        imported.times.insert(imported.times.end(), values, values + rows);
        return absl::OkStatus();
      }));
  return store.Write(NodePath(0, type.name, "time"),
                     Array::Borrow(DType::kInt64, {type.count},
                                   imported.times.data(), nullptr));
}

}  // namespace

absl::StatusOr<ImportedNodes> ImportNodes(const RawNodes& nodes,
                                          Normalization normalization,
                                          StoreWriter& store) {
  ImportedNodes imported;
  NodeType& type = imported.type;
  type.name = nodes.name;
  type.count = nodes.count;
  if (nodes.label != nullptr) {
    MILLRACE_RETURN_IF_ERROR(ImportLabels(*nodes.label, imported, store));
  }
  if (nodes.time != nullptr) {
    MILLRACE_RETURN_IF_ERROR(ImportTimes(*nodes.time, imported, store));
  }
  if (nodes.feature != nullptr) {
    MILLRACE_ASSIGN_OR_RETURN(
        type.feature, ImportFeatures(*nodes.feature, nodes.count, normalization,
                                     NodePath(0, type.name, "feature"), store));
  }
  // Comes last, when the columns have been found to have as many rows.
  MILLRACE_RETURN_IF_ERROR(WriteIds(type, store));
  return imported;
}

}  // namespace millrace
