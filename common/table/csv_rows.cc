// SPDX-License-Identifier: Apache-2.0
#include "common/table/csv_rows.h"

#include <fast_float/fast_float.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/quoted.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/table/line_reader.h"

namespace millrace {
namespace {

// Blanks may follow a comma, as in "1, 2".
bool Parse(std::string_view field, int64_t& value) {
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  return error == std::errc() && stop == end;
}

// Whether `value` is infinity or 0 because the number in `field` exceeds the
// range of float64.
bool OutOfRange(std::string_view field, double value) {
  if (value != 0 && !std::isinf(value)) return false;
  const std::string_view digits = field.substr(0, field.find_first_of("eE"));
  return digits.find_first_of("123456789") != std::string_view::npos;
}

// T is float or double. Numbers are rounded to the nearest T.
template <typename T>
bool Parse(std::string_view field, T& value) {
  const char* end = field.data() + field.size();
  const auto [stop, error] = fast_float::from_chars(field.data(), end, value);
  return error == std::errc() && stop == end &&
         !(std::is_same_v<T, double> && OutOfRange(field, value));
}

class CsvReader final : public RowReader {
 public:
  CsvReader(LineReader lines, int64_t width)
      : lines_(std::move(lines)), width_(width) {}

  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    return Read(max_rows, values, "an integer of 64 bits");
  }
  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return Read(max_rows, values, "a number (float32)");
  }
  absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows,
                                      double* values) override {
    return Read(max_rows, values,
                "a number (float64: 0, or from 4.9e-324 to 1.8e+308)");
  }

 private:
  template <typename T>
  absl::StatusOr<int64_t> Read(int64_t max_rows, T* values,
                               std::string_view kind) {
    for (int64_t row = 0; row < max_rows; ++row) {
      MILLRACE_ASSIGN_OR_RETURN(std::optional<std::string_view> line,
                                lines_.Next());
      if (!line.has_value()) return row;
      MILLRACE_RETURN_IF_ERROR(ParseLine(*line, values + row * width_, kind));
    }
    return max_rows;
  }

  template <typename T>
  absl::Status ParseLine(std::string_view line, T* values,
                         std::string_view kind) {
    std::string_view rest = line;
    for (int64_t column = 0; column < width_; ++column) {
      const size_t comma = rest.find(',');
      const bool last = column + 1 == width_;
      if ((comma == std::string_view::npos) != last) return Ragged(line);
      const std::string_view field = WithoutSpaces(rest.substr(0, comma));
      if (!Parse(field, values[column])) {
        return absl::InvalidArgumentError(
            StrCat(lines_.name(), ": line ", lines_.line_number(), ": field ",
                   column + 1, " is ", Quoted(field), ", not ", kind));
      }
      if (!last) rest.remove_prefix(comma + 1);
    }
    return absl::OkStatus();
  }

  absl::Status Ragged(std::string_view line) const {
    const auto fields = std::count(line.begin(), line.end(), ',') + 1;
    return absl::InvalidArgumentError(
        StrCat(lines_.name(), ": line ", lines_.line_number(), ": ", fields,
               fields == 1 ? " field" : " fields",
               " where every line must have ", width_));
  }

  LineReader lines_;
  const int64_t width_;
};

class CsvSource final : public RowSource {
 public:
  CsvSource(std::filesystem::path path, int64_t width)
      : RowSource(path.string(), width, -1), path_(std::move(path)) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    MILLRACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path_));
    return std::make_unique<CsvReader>(std::move(lines), width());
  }

  absl::StatusOr<bool> Integral() const override {
    MILLRACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path_));
    while (true) {
      MILLRACE_ASSIGN_OR_RETURN(std::optional<std::string_view> line,
                                lines.Next());
      if (!line.has_value()) return true;
      if (line->find_first_not_of("0123456789-, ") != std::string_view::npos) {
        return false;
      }
      if (lines.line_number() % 4096 == 0) {
        MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      }
    }
  }

  std::string Where(int64_t row) const override {
    return StrCat(name(), ": line ", row + 1);
  }

 private:
  const std::filesystem::path path_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowSource>> OpenCsvRows(
    const std::filesystem::path& path, int64_t width) {
  MILLRACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  if (width == 0) {
    MILLRACE_ASSIGN_OR_RETURN(std::optional<std::string_view> line,
                              lines.Next());
    if (!line.has_value()) {
      return absl::InvalidArgumentError(
          StrCat(path.string(), ": the file is empty"));
    }
    width = std::count(line->begin(), line->end(), ',') + 1;
  }
  return std::make_unique<CsvSource>(path, width);
}

}  // namespace millrace
