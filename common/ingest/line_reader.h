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
#include "common/ingest/inflated_file.h"

namespace millrace {

// The lines of a text file, plain or gzip (see InflatedFile). Memory is a
// buffer of about the longest line. Single-threaded.
class LineReader {
 public:
  // Without its line feed: more than the widest row needs. What is longer is
  // no table, but may be a file of zeros that a few KB of gzip hold.
  static constexpr size_t kMaxLineBytes = 32 * size_t{kMaxRowValues};

  // Errors of InflatedFile::Open.
  static absl::StatusOr<LineReader> Open(const std::filesystem::path& path);

  // The next line without its end ("\n" or "\r\n"), valid until the next
  // call; nothing at the end. Errors of InflatedFile::Read; INVALID_ARGUMENT:
  // more than kMaxLineBytes.
  absl::StatusOr<std::optional<std::string_view>> Next();

  // Of the line that Next() gave last, from 1.
  int64_t line_number() const { return line_number_; }
  const std::string& name() const { return file_->name(); }

 private:
  explicit LineReader(std::unique_ptr<InflatedFile> file)
      : file_(std::move(file)) {}
  absl::Status Fill();
  absl::Status TooLong() const;

  std::unique_ptr<InflatedFile> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what is not handed out yet
  size_t end_ = 0;
  bool finished_ = false;  // the file is read to its end
  int64_t line_number_ = 0;
};

// `directory`/`stem`.csv.gz, else `directory`/`stem`.csv, else nothing.
std::optional<std::filesystem::path> FindCsv(
    const std::filesystem::path& directory, std::string_view stem);
// The same; NOT_FOUND names the file that is missing.
absl::StatusOr<std::filesystem::path> RequireCsv(
    const std::filesystem::path& directory, std::string_view stem);

// All lines of a small file, each split at its commas.
absl::StatusOr<std::vector<std::vector<std::string>>> ReadSmallCsv(
    const std::filesystem::path& path);

}  // namespace millrace
