// SPDX-License-Identifier: Apache-2.0
#include "common/table/triple_rows.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/interrupt.h"
#include "common/base/quoted.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/table/line_reader.h"

namespace millrace {
namespace {

constexpr int kFields = 3;
using Fields = std::array<std::string_view, kFields>;

// Stores the first fields of a line and returns the number of fields.
int SplitLine(std::string_view line, char separator, Fields& fields) {
  if (separator == ' ') line = WithoutSpaces(line);
  int count = 0;
  while (true) {
    const size_t end = line.find(separator);
    if (count < kFields) fields[count] = WithoutSpaces(line.substr(0, end));
    ++count;
    if (end == std::string_view::npos) return count;
    line.remove_prefix(end + 1);
    if (separator == ' ') line = WithoutSpaces(line);
  }
}

class TripleReader {
 public:
  static absl::StatusOr<TripleReader> Open(const TripleFile& file) {
    MILLRACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(file.path));
    return TripleReader(file, std::move(lines));
  }

  // Reads the next triple, or returns false at the end. If `add`, new names get
  // numbers.
  absl::StatusOr<bool> Next(bool add, Triple& triple) {
    MILLRACE_ASSIGN_OR_RETURN(const std::optional<std::string_view> line,
                              lines_.Next());
    if (!line.has_value()) return false;
    Fields fields;
    const int count = SplitLine(*line, file_.separator, fields);
    if (count != kFields) {
      return Error(StrCat(count, count == 1 ? " field" : " fields",
                          " where every line must have 3"));
    }
    // If both are new, the head of a line gets its number before the tail.
    for (const int part : {0, 1, 2}) {
      const int column = file_.columns[part];
      Numbering& numbering = part == 1 ? *file_.relations : *file_.entities;
      if (fields[column].empty()) {
        return Error(StrCat("field ", column + 1, " is empty"));
      }
      if (add) numbering.Add(fields[column]);
      const absl::StatusOr<int64_t> number = numbering.Find(fields[column]);
      if (!number.ok()) {
        return Error(
            StrCat("field ", column + 1, ": ", number.status().message()));
      }
      triple[part] = *number;
    }
    return true;
  }

 private:
  TripleReader(const TripleFile& file, LineReader lines)
      : file_(file), lines_(std::move(lines)) {}

  absl::Status Error(const std::string& what) const {
    return absl::InvalidArgumentError(
        StrCat(lines_.name(), ": line ", lines_.line_number(), ": ", what));
  }

  TripleFile file_;
  LineReader lines_;
};

class TripleRowReader final : public RowReader {
 public:
  TripleRowReader(TripleReader triples, const TripleView& view)
      : triples_(std::move(triples)), view_(view) {}

  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    return Read(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return Read(max_rows, values);
  }

 private:
  template <typename T>
  absl::StatusOr<int64_t> Read(int64_t max_rows, T* values) {
    Triple triple;
    for (int64_t row = 0; row < max_rows; ++row) {
      MILLRACE_ASSIGN_OR_RETURN(const bool more, triples_.Next(false, triple));
      if (!more) return row;
      for (int i = 0; i < view_.width; ++i) {
        *values++ = static_cast<T>(triple[view_.places[i]] + view_.offset);
      }
    }
    return max_rows;
  }

  TripleReader triples_;
  const TripleView view_;
};

class TripleSource final : public RowSource {
 public:
  TripleSource(const TripleFile& file, const TripleView& view)
      : RowSource(file.path.string(), view.width, file.rows),
        file_(file),
        view_(view) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    MILLRACE_ASSIGN_OR_RETURN(TripleReader triples, TripleReader::Open(file_));
    return std::make_unique<TripleRowReader>(std::move(triples), view_);
  }
  absl::StatusOr<bool> Integral() const override { return true; }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": line ", row + 1);
  }

 private:
  const TripleFile file_;
  const TripleView view_;
};

}  // namespace

Numbering::Numbering(std::string kind)
    : kind_(std::move(kind)),
      named_(true),
      names_(std::make_shared<std::deque<std::string>>()) {}

Numbering::Numbering(std::string kind, int64_t count, std::string declared_by)
    : kind_(std::move(kind)),
      named_(false),
      count_(count),
      declared_by_(std::move(declared_by)) {}

void Numbering::Add(std::string_view field) {
  if (!named_ || numbers_.contains(AbslView(field))) return;
  const std::string& name = names_->emplace_back(field);
  numbers_.emplace(name, count() - 1);
}

absl::StatusOr<int64_t> Numbering::Find(std::string_view field) const {
  if (named_) {
    const auto found = numbers_.find(AbslView(field));
    if (found != numbers_.end()) return found->second;
    return absl::InvalidArgumentError(
        StrCat(kind_, " ", Quoted(field),
               " is new: the file changed while it was being read"));
  }
  int64_t number = 0;
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, number);
  if (error != std::errc() || stop != end) {
    return absl::InvalidArgumentError(
        StrCat(Quoted(field), " is not an integer of 64 bits"));
  }
  if (number >= 0 && number < count_) return number;
  return absl::InvalidArgumentError(
      StrCat(kind_, " ", number, " is out of range: ", declared_by_,
             " declares ", count_, ", so numbers are 0 to ", count_ - 1));
}

absl::StatusOr<char> FindSeparator(const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(LineReader lines, LineReader::Open(path));
  MILLRACE_ASSIGN_OR_RETURN(const std::optional<std::string_view> line,
                            lines.Next());
  if (!line.has_value() || line->find('\t') != std::string_view::npos) {
    return '\t';
  }
  Fields fields;
  for (const char separator : {',', ' '}) {
    if (SplitLine(*line, separator, fields) == kFields) return separator;
  }
  return absl::InvalidArgumentError(
      StrCat(path.string(), ": line 1: ", Quoted(*line),
             " is not three fields, separated by tabs, commas or blanks"));
}

absl::Status ScanTriples(TripleFile& file) {
  MILLRACE_ASSIGN_OR_RETURN(TripleReader triples, TripleReader::Open(file));
  Triple triple;
  for (file.rows = 0;; ++file.rows) {
    if (file.rows % 4096 == 0) {
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    }
    MILLRACE_ASSIGN_OR_RETURN(const bool more, triples.Next(true, triple));
    if (!more) return absl::OkStatus();
  }
}

std::shared_ptr<const RowSource> TripleRows(const TripleFile& file,
                                            const TripleView& view) {
  return std::make_shared<TripleSource>(file, view);
}

}  // namespace millrace
