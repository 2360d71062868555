// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/table/inflated_file.h"

namespace millrace {

// Reads the lines of a text file, plain or gzip (see InflatedFile). Its buffer
// grows to about the size of the longest line. Not thread-safe.
class LineReader {
 public:
  // Limit on a line's length without its line feed, more than the widest row
  // needs. A longer line may come from a few KB of gzip that expand to endless
  // zeros.
  static constexpr size_t kMaxLineBytes = 32 * size_t{kMaxRowValues};

  // Fails as InflatedFile::Open() does.
  static absl::StatusOr<LineReader> Open(const std::filesystem::path& path);

  // The next line without its ending ("\n" or "\r\n"), valid until the next
  // call; nullopt at the end. INVALID_ARGUMENT: longer than kMaxLineBytes. Also
  // the errors of InflatedFile::Read().
  absl::StatusOr<std::optional<std::string_view>> Next();

  // The number of the line last returned by Next(), counted from 1.
  int64_t line_number() const { return line_number_; }
  const std::string& name() const { return file_->name(); }

 private:
  explicit LineReader(std::unique_ptr<InflatedFile> file)
      : file_(std::move(file)) {}
  absl::Status Fill();
  absl::Status TooLong() const;

  std::unique_ptr<InflatedFile> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // [begin_, end_) of buffer_ has not been returned yet
  size_t end_ = 0;
  bool finished_ = false;  // the whole file has been read
  int64_t line_number_ = 0;
};

// Returns `directory`/`stem`.csv.gz if it exists, otherwise the same without
// .gz if that exists.
std::optional<std::filesystem::path> FindCsv(
    const std::filesystem::path& directory, std::string_view stem);
// The same; NOT_FOUND names the file that is missing.
absl::StatusOr<std::filesystem::path> RequireCsv(
    const std::filesystem::path& directory, std::string_view stem);

// Reads all lines of a small file, each split at its commas. INVALID_ARGUMENT:
// the file is empty. Also the errors of LineReader.
absl::StatusOr<std::vector<std::vector<std::string>>> ReadSmallCsv(
    const std::filesystem::path& path);

}  // namespace millrace
