// SPDX-License-Identifier: Apache-2.0
#include "common/table/line_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {

absl::StatusOr<LineReader> LineReader::Open(const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<InflatedFile> file,
                            InflatedFile::Open(path));
  return LineReader(std::move(file));
}

absl::Status LineReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const size_t bytes = file_->read_bytes();
  if (buffer_.size() - end_ < bytes) buffer_.resize(end_ + 2 * bytes);
  MILLRACE_ASSIGN_OR_RETURN(const size_t count,
                            file_->Read(buffer_.data() + end_, bytes));
  finished_ = count == 0;
  end_ += count;
  return absl::OkStatus();
}

absl::Status LineReader::TooLong() const {
  return absl::InvalidArgumentError(StrCat(
      name(), ": line ", line_number_ + 1, " is longer than ", kMaxLineBytes,
      " bytes, the limit of a line\n"
      "give a text file with a line feed after each row"));
}

absl::StatusOr<std::optional<std::string_view>> LineReader::Next() {
  size_t searched = 0;
  while (true) {
    const char* start = buffer_.data() + begin_;
    const size_t size = end_ - begin_;
    const void* newline =
        size > searched ? std::memchr(start + searched, '\n', size - searched)
                        : nullptr;
    size_t length = size;
    if (newline != nullptr) {
      length = static_cast<size_t>(static_cast<const char*>(newline) - start);
    }
    if (length > kMaxLineBytes) return TooLong();
    if (newline == nullptr && !finished_) {
      searched = size;
      MILLRACE_RETURN_IF_ERROR(Fill());
      continue;
    }
    if (newline == nullptr && size == 0) return std::nullopt;
    begin_ += length + (newline != nullptr ? 1 : 0);
    if (length > 0 && start[length - 1] == '\r') --length;
    ++line_number_;
    return std::string_view(start, length);
  }
}

std::optional<std::filesystem::path> FindCsv(
    const std::filesystem::path& directory, std::string_view stem) {
  for (const char* extension : {".csv.gz", ".csv"}) {
    std::filesystem::path path = directory / StrCat(stem, extension);
    if (FileExists(path)) return path;
  }
  return std::nullopt;
}

absl::StatusOr<std::filesystem::path> RequireCsv(
    const std::filesystem::path& directory, std::string_view stem) {
  std::optional<std::filesystem::path> path = FindCsv(directory, stem);
  if (!path.has_value()) {
    return absl::NotFoundError(
        StrCat((directory / StrCat(stem, ".csv.gz")).string(),
               ": no such file, with or without .gz"));
  }
  return *std::move(path);
}

absl::StatusOr<std::vector<std::vector<std::string>>> ReadSmallCsv(
    const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  std::vector<std::vector<std::string>> lines;
  while (true) {
    MILLRACE_ASSIGN_OR_RETURN(std::optional<std::string_view> line,
                              reader.Next());
    if (!line.has_value()) break;
    lines.push_back(absl::StrSplit(AbslView(*line), ','));
  }
  if (lines.empty()) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ": the file is empty"));
  }
  return lines;
}

}  // namespace millrace
