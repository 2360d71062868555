// SPDX-License-Identifier: Apache-2.0
#include "common/table/restored_rows.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kMaxWindows = 16 << 10;

// An unlinked temporary file that is read and written at offsets.
class ScratchFile {
 public:
  static absl::StatusOr<ScratchFile> Create(
      const std::filesystem::path& directory) {
    std::string path = (directory / ".millrace-import-XXXXXX").string();
    ScratchFile file;
    file.directory_ = directory;
    file.fd_ = UniqueFd(mkostemp(path.data(), O_CLOEXEC));
    if (file.fd_.get() < 0) return FileError("create", path, errno);
    unlink(path.c_str());
    return file;
  }

  absl::Status Write(const char* data, size_t bytes, uint64_t offset) {
    while (bytes > 0) {
      const ssize_t done =
          pwrite(fd_.get(), data, bytes, static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return FileError("write a file in", directory_, errno);
      data += done;
      offset += static_cast<uint64_t>(done);
      bytes -= static_cast<size_t>(done);
    }
    return absl::OkStatus();
  }
  absl::Status Read(char* data, size_t bytes, uint64_t offset) {
    while (bytes > 0) {
      const ssize_t done =
          pread(fd_.get(), data, bytes, static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return FileError("read a file in", directory_, errno);
      data += done;
      offset += static_cast<uint64_t>(done);
      bytes -= static_cast<size_t>(done);
    }
    return absl::OkStatus();
  }

 private:
  UniqueFd fd_;
  std::filesystem::path directory_;
};

struct Table {
  std::string name;
  std::string kind;
  std::vector<RowShare> shares;
  int64_t rows = 0;
  int64_t width = 1;
  RestoreOptions options;

  absl::Status DuplicateError(std::string_view what) const {
    return absl::InvalidArgumentError(
        StrCat(name, ": ", what,
               "; a program that was run twice with the same output folder may "
               "have appended its output"));
  }
};

absl::StatusOr<int64_t> ReadRows(RowReader& reader, int64_t rows,
                                 int64_t* out) {
  return reader.ReadIntegers(rows, out);
}
absl::StatusOr<int64_t> ReadRows(RowReader& reader, int64_t rows, float* out) {
  return reader.ReadFloats(rows, out);
}
absl::StatusOr<int64_t> ReadRows(RowReader& reader, int64_t rows, double* out) {
  return reader.ReadDoubles(rows, out);
}

// Restores the order of a table's rows. The table is divided into windows of
// equal numbers of rows, and each window has its place in the scratch file.
// First, every row is written to its window's place, preceded by its position;
// then windows are read one after the other and sorted. T is int64_t, float,
// or, for tables with one number per row, double.
template <typename T>
class RestoringReader final : public RowReader {
 public:
  RestoringReader(std::shared_ptr<const Table> table, ScratchFile file)
      : table_(std::move(table)),
        file_(std::move(file)),
        value_bytes_(static_cast<size_t>(table_->width) * sizeof(T)),
        record_bytes_(value_bytes_ + sizeof(int64_t)) {
    const auto half = static_cast<int64_t>(table_->options.memory_bytes / 2);
    const auto record = static_cast<int64_t>(record_bytes_);
    window_rows_ = std::max<int64_t>(
        {half / record, (table_->rows + kMaxWindows - 1) / kMaxWindows, 1});
    const int64_t windows = (table_->rows + window_rows_ - 1) / window_rows_;
    windows_.resize(static_cast<size_t>(windows));
    block_rows_ = std::max<int64_t>(kBlockBytes / record, 1);
    buffer_bytes_ = static_cast<size_t>(
        std::max(record, half / std::max<int64_t>(windows, 1)));
  }

  absl::Status Start() {
    for (const RowShare& share : table_->shares) {
      MILLRACE_RETURN_IF_ERROR(Deal(share));
    }
    for (size_t i = 0; i < windows_.size(); ++i) {
      MILLRACE_RETURN_IF_ERROR(Flush(i));
      windows_[i].buffer = {};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    if constexpr (std::is_floating_point_v<T>) {
      return absl::InvalidArgumentError(
          StrCat(table_->name, ": integers are needed here"));
    } else {
      return Read(max_rows, values);
    }
  }
  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return Read(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows,
                                      double* values) override {
    return Read(max_rows, values);
  }

 private:
  struct Window {
    std::vector<char> buffer;  // records not yet written to the file
    int64_t rows = 0;          // rows written to the file
  };

  absl::Status Deal(const RowShare& share);
  absl::Status Put(int64_t position, const T* values);
  absl::Status Flush(size_t window);
  absl::Status LoadWindow(int64_t window);

  template <typename To>
  absl::StatusOr<int64_t> Read(int64_t max_rows, To* values) {
    const int64_t rows = std::min(max_rows, table_->rows - next_);
    for (int64_t done = 0; done < rows;) {
      const int64_t window = next_ / window_rows_;
      if (window != loaded_) MILLRACE_RETURN_IF_ERROR(LoadWindow(window));
      const int64_t first = next_ - window * window_rows_;
      const int64_t count = std::min(rows - done, window_rows_ - first);
      const T* from = sorted_.data() + first * table_->width;
      std::transform(from, from + count * table_->width,
                     values + done * table_->width,
                     [](T value) { return static_cast<To>(value); });
      next_ += count;
      done += count;
    }
    return rows;
  }

  const std::shared_ptr<const Table> table_;  // shared by all readers
  ScratchFile file_;
  const size_t value_bytes_;
  const size_t record_bytes_;
  int64_t window_rows_ = 1;
  int64_t block_rows_ = 1;  // rows read at a time
  size_t buffer_bytes_ = 0;
  std::vector<Window> windows_;
  int64_t next_ = 0;
  int64_t loaded_ = -1;
  std::vector<T> sorted_;  // rows of the window loaded_
};

template <typename T>
absl::Status RestoringReader<T>::Deal(const RowShare& share) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> positions,
                            share.positions->Open());
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> values,
                            share.values->Open());
  std::vector<int64_t> places(static_cast<size_t>(block_rows_));
  std::vector<T> rows(static_cast<size_t>(block_rows_ * table_->width));
  int64_t first = 0;
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(
        const int64_t count,
        positions->ReadIntegers(block_rows_, places.data()));
    if (count == 0) return absl::OkStatus();
    MILLRACE_RETURN_IF_ERROR(ReadRows(*values, count, rows.data()).status());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t position = places[i] - share.offset;
      if (position < 0 || position >= table_->rows) {
        return absl::InvalidArgumentError(
            StrCat(share.positions->Where(first + i), ": ", table_->kind, " ",
                   places[i], " is out of range: ids are ", share.offset,
                   " to ", share.offset + table_->rows - 1));
      }
      MILLRACE_RETURN_IF_ERROR(Put(position, rows.data() + i * table_->width));
    }
    first += count;
  }
}

template <typename T>
absl::Status RestoringReader<T>::Put(int64_t position, const T* values) {
  const auto window = static_cast<size_t>(position / window_rows_);
  std::vector<char>& buffer = windows_[window].buffer;
  if (buffer.size() + record_bytes_ > buffer_bytes_) {
    MILLRACE_RETURN_IF_ERROR(Flush(window));
  }
  if (buffer.capacity() == 0) buffer.reserve(buffer_bytes_);
  const size_t end = buffer.size();
  buffer.resize(end + record_bytes_);
  std::memcpy(buffer.data() + end, &position, sizeof(position));
  std::memcpy(buffer.data() + end + sizeof(position), values, value_bytes_);
  return absl::OkStatus();
}

// A window has room for exactly its rows, so more rows mean that some occur
// twice.
template <typename T>
absl::Status RestoringReader<T>::Flush(size_t number) {
  Window& window = windows_[number];
  const int64_t first = static_cast<int64_t>(number) * window_rows_;
  const auto rows = static_cast<int64_t>(window.buffer.size() / record_bytes_);
  const int64_t room = std::min(window_rows_, table_->rows - first);
  if (window.rows + rows > room) {
    return table_->DuplicateError(StrCat("some of the ", table_->kind, "s ",
                                         first, " to ", first + room - 1,
                                         " occur twice"));
  }
  const auto offset =
      static_cast<uint64_t>(first + window.rows) * record_bytes_;
  window.rows += rows;
  MILLRACE_RETURN_IF_ERROR(
      file_.Write(window.buffer.data(), window.buffer.size(), offset));
  window.buffer.clear();
  return absl::OkStatus();
}

template <typename T>
absl::Status RestoringReader<T>::LoadWindow(int64_t number) {
  MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
  const int64_t first = number * window_rows_;
  const int64_t rows = windows_[static_cast<size_t>(number)].rows;
  sorted_.resize(static_cast<size_t>(
      std::min(window_rows_, table_->rows - first) * table_->width));
  std::vector<bool> seen(static_cast<size_t>(window_rows_), false);
  std::vector<char> block;
  for (int64_t done = 0; done < rows;) {
    const int64_t count = std::min(block_rows_, rows - done);
    block.resize(static_cast<size_t>(count) * record_bytes_);
    MILLRACE_RETURN_IF_ERROR(
        file_.Read(block.data(), block.size(),
                   static_cast<uint64_t>(first + done) * record_bytes_));
    for (const char* record = block.data();
         record < block.data() + block.size(); record += record_bytes_) {
      int64_t position = 0;
      std::memcpy(&position, record, sizeof(position));
      const int64_t place = position - first;
      if (seen[static_cast<size_t>(place)]) {
        return table_->DuplicateError(
            StrCat(table_->kind, " ", position, " occurs twice"));
      }
      seen[static_cast<size_t>(place)] = true;
      std::memcpy(sorted_.data() + place * table_->width,
                  record + sizeof(position), value_bytes_);
    }
    done += count;
  }
  // No row is missing: the shares have as many rows as the table, and no window
  // has more than its own.
  loaded_ = number;
  return absl::OkStatus();
}

class RestoredSource final : public RowSource {
 public:
  explicit RestoredSource(std::shared_ptr<const Table> table)
      : RowSource(table->name, table->width, table->rows),
        table_(std::move(table)) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    MILLRACE_ASSIGN_OR_RETURN(ScratchFile file,
                              ScratchFile::Create(table_->options.scratch));
    MILLRACE_ASSIGN_OR_RETURN(const bool integral, Integral());
    if (integral) return Start<int64_t>(std::move(file));
    // A single column may be edge weights, which are checked before they are
    // rounded to float.
    return width() == 1 ? Start<double>(std::move(file))
                        : Start<float>(std::move(file));
  }
  absl::StatusOr<bool> Integral() const override {
    for (const RowShare& share : table_->shares) {
      MILLRACE_ASSIGN_OR_RETURN(const bool integral, share.values->Integral());
      if (!integral) return false;
    }
    return true;
  }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": ", table_->kind, " ", row);
  }

 private:
  template <typename T>
  absl::StatusOr<std::unique_ptr<RowReader>> Start(ScratchFile file) const {
    auto reader = std::make_unique<RestoringReader<T>>(table_, std::move(file));
    MILLRACE_RETURN_IF_ERROR(reader->Start());
    return reader;
  }

  const std::shared_ptr<const Table> table_;  // shared by all readers
};

}  // namespace

absl::StatusOr<std::shared_ptr<const RowSource>> RestoreRows(
    std::string name, std::string kind, std::vector<RowShare> shares,
    int64_t rows, const RestoreOptions& options) {
  const int64_t width = shares[0].values->width();
  int64_t sum = 0;
  for (const RowShare& share : shares) {
    const RowSource& values = *share.values;
    if (share.positions->width() != 1 ||
        share.positions->rows() != values.rows()) {
      return absl::InvalidArgumentError(
          StrCat(values.name(), ": ", values.rows(), " rows, but ",
                 share.positions->name(), " has ", share.positions->rows(), " ",
                 kind, " ids; each row needs one"));
    }
    if (values.width() != width) {
      return absl::InvalidArgumentError(
          StrCat(values.name(), ": ", values.width(), " numbers per row, but ",
                 shares[0].values->name(), " has ", width));
    }
    sum += values.rows();
  }
  auto table =
      std::make_shared<Table>(Table{std::move(name), std::move(kind),
                                    std::move(shares), rows, width, options});
  if (sum > rows) {
    return table->DuplicateError(
        StrCat(sum, " rows for ", rows, " ", table->kind, "s"));
  }
  if (sum < rows) {
    return absl::InvalidArgumentError(
        StrCat(table->name, ": ", sum, " rows for ", rows, " ", table->kind,
               "s; each needs one\nare all partitions there?"));
  }
  return std::make_shared<RestoredSource>(std::move(table));
}

}  // namespace millrace
