// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/feature_import.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <system_error>
#include <vector>

#include "common/base/array.h"
#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

constexpr int64_t kBlockValues = 256 << 10;

using BlockVisitor = std::function<absl::Status(float* values, int64_t rows)>;

// Calls `visit` for consecutive blocks of `source`, after checking their
// values.
absl::Status ForEachBlock(const RowSource& source, int64_t expected_rows,
                          const BlockVisitor& visit) {
  MILLRACE_RETURN_IF_ERROR(
      source.rows() < 0 ? absl::OkStatus()
                        : CheckRowCount(source, source.rows(), expected_rows));
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source.Open());
  const int64_t block = std::max<int64_t>(kBlockValues / source.width(), 1);
  std::vector<float> values(static_cast<size_t>(block * source.width()));
  Progress progress(StrCat("features of ", source.name()), expected_rows,
                    "rows");
  int64_t done = 0;
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              reader->ReadFloats(block, values.data()));
    if (rows == 0) break;
    MILLRACE_RETURN_IF_ERROR(
        CheckFinite(source, done, values.data(), rows, false));
    MILLRACE_RETURN_IF_ERROR(visit(values.data(), rows));
    done += rows;
    progress.Set(done);
  }
  progress.Finish();
  return CheckRowCount(source, done, expected_rows);
}

// Normalises a block of rows in place. Making one takes one or two passes over
// the whole matrix.
using RowChange = std::function<void(float* values, int64_t rows)>;

// PyG's NormalizeFeatures: x - min(x), each row divided by max(1, its sum).
absl::StatusOr<RowChange> RowNormalization(const RowSource& source,
                                           int64_t rows) {
  float lowest = std::numeric_limits<float>::max();
  MILLRACE_RETURN_IF_ERROR(
      ForEachBlock(source, rows, [&](float* values, int64_t count) {
        lowest = std::min(
            lowest, *std::min_element(values, values + count * source.width()));
        return absl::OkStatus();
      }));
  return [lowest, width = source.width()](float* values, int64_t count) {
    for (int64_t row = 0; row < count; ++row, values += width) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) {
        values[i] -= lowest;
        sum += values[i];
      }
      const auto divisor = static_cast<float>(std::max(sum, 1.0));
      for (int64_t i = 0; i < width; ++i) values[i] /= divisor;
    }
  };
}

absl::StatusOr<RowChange> Standardization(const RowSource& source,
                                          int64_t rows) {
  const auto width = static_cast<size_t>(source.width());
  std::vector<double> mean(width, 0), scale(width, 0);
  MILLRACE_RETURN_IF_ERROR(
      ForEachBlock(source, rows, [&](const float* values, int64_t count) {
        for (int64_t row = 0; row < count; ++row) {
          for (size_t i = 0; i < width; ++i) mean[i] += *values++;
        }
        return absl::OkStatus();
      }));
  const auto divisor = static_cast<double>(std::max<int64_t>(rows, 1));
  for (double& sum : mean) sum /= divisor;
  MILLRACE_RETURN_IF_ERROR(
      ForEachBlock(source, rows, [&](const float* values, int64_t count) {
        for (int64_t row = 0; row < count; ++row) {
          for (size_t i = 0; i < width; ++i) {
            const double distance = *values++ - mean[i];
            scale[i] += distance * distance;
          }
        }
        return absl::OkStatus();
      }));
  for (size_t i = 0; i < width; ++i) {
    const double deviation = std::sqrt(scale[i] / divisor);
    // Because of rounding, the mean of equal values may differ from them.
    const bool constant = deviation <= std::abs(mean[i]) * 1e-12;
    scale[i] = constant ? 0 : 1 / deviation;
  }
  return [mean, scale, width](float* values, int64_t count) {
    for (int64_t row = 0; row < count; ++row) {
      for (size_t i = 0; i < width; ++i, ++values) {
        *values = static_cast<float>((*values - mean[i]) * scale[i]);
      }
    }
  };
}

absl::Status WriteFeatures(const RowSource& source, int64_t rows,
                           const RowChange& change, NpyWriter& writer) {
  return ForEachBlock(source, rows, [&](float* values, int64_t count) {
    if (change) change(values, count);
    return writer.Append(
        values, static_cast<size_t>(count * source.width()) * sizeof(float));
  });
}

}  // namespace

absl::Status CheckRowCount(const RowSource& source, int64_t rows,
                           int64_t expected) {
  if (rows == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(source.name(), ": ", rows,
                                           " rows for ", expected,
                                           " nodes; each node needs a row"));
}

absl::StatusOr<ColumnSpec> ImportFeatures(const RowSource& source, int64_t rows,
                                          Normalization normalization,
                                          const std::string& relative_path,
                                          StoreWriter& store) {
  const ColumnSpec column{DType::kFloat32, {source.width()}};
  const RowSource* values = &source;
  std::unique_ptr<RowSource> parsed;
  const std::filesystem::path copy = store.scratch() / "features.npy";
  RowChange change;
  if (normalization != Normalization::kNone) {
    // Several passes follow; copy the values so that text is parsed only once.
    MILLRACE_ASSIGN_OR_RETURN(
        std::unique_ptr<NpyWriter> writer,
        NpyWriter::Create(copy, DType::kFloat32, column.row_shape, rows));
    MILLRACE_RETURN_IF_ERROR(WriteFeatures(source, rows, nullptr, *writer));
    MILLRACE_RETURN_IF_ERROR(writer->Finish().status());
    MILLRACE_ASSIGN_OR_RETURN(parsed, OpenNpyRows(copy));
    values = parsed.get();
    MILLRACE_ASSIGN_OR_RETURN(change, normalization == Normalization::kRow
                                          ? RowNormalization(*values, rows)
                                          : Standardization(*values, rows));
  }
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<NpyWriter> writer,
      store.Open(relative_path, DType::kFloat32, column.row_shape, rows));
  MILLRACE_RETURN_IF_ERROR(WriteFeatures(*values, rows, change, *writer));
  MILLRACE_RETURN_IF_ERROR(store.Close(relative_path, std::move(writer)));
  std::error_code ignored;
  std::filesystem::remove(copy, ignored);
  return column;
}

}  // namespace millrace
