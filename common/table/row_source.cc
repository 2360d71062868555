// SPDX-License-Identifier: Apache-2.0
#include "common/table/row_source.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/schema.h"

namespace millrace {

absl::StatusOr<int64_t> RowReader::ReadDoubles(int64_t max_rows,
                                               double* values) {
  std::vector<float> floats(static_cast<size_t>(max_rows));
  MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                            ReadFloats(max_rows, floats.data()));
  std::copy_n(floats.begin(), rows, values);
  return rows;
}

absl::Status CheckWidth(std::string_view name, int64_t width) {
  if (width <= kMaxRowValues) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(name, ": rows of ", width, " values; a row has at most ",
             kMaxRowValues, "\nsave it with one row per node or edge"));
}

absl::Status CheckFinite(const RowSource& source, int64_t first,
                         const float* values, int64_t rows, bool nan_allowed) {
  for (int64_t i = 0; i < rows * source.width(); ++i) {
    const float value = values[i];
    if (std::isfinite(value) || (nan_allowed && std::isnan(value))) {
      continue;
    }
    return absl::InvalidArgumentError(StrCat(
        source.Where(first + i / source.width()), ": column ",
        i % source.width() + 1, " is ", std::isnan(value) ? "NaN" : "infinite",
        "; ", nan_allowed ? "a number or NaN" : "a finite number",
        " is needed here"));
  }
  return absl::OkStatus();
}

}  // namespace millrace
