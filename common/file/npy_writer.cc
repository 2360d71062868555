// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/file/file.h"
#include "common/file/npy.h"

namespace millrace {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

std::vector<int64_t> WithRows(int64_t rows,
                              const std::vector<int64_t>& row_shape) {
  std::vector<int64_t> shape = {rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  return shape;
}

// Pads the header to `bytes` with spaces before its final newline.
std::string PadHeader(std::string header, size_t bytes) {
  MILLRACE_CHECK(header.size() <= bytes);
  header.insert(header.size() - 1, bytes - header.size(), ' ');
  const size_t dictionary = bytes - 10;
  header[8] = static_cast<char>(dictionary & 0xff);
  header[9] = static_cast<char>(dictionary >> 8);
  return header;
}

class FileNpyWriter : public NpyWriter {
 public:
  FileNpyWriter(std::filesystem::path path, UniqueFd fd, DType dtype,
                std::vector<int64_t> row_shape, int64_t rows)
      : path_(std::move(path)),
        fd_(std::move(fd)),
        dtype_(dtype),
        row_shape_(std::move(row_shape)),
        promised_rows_(rows),
        row_bytes_(
            Array::Borrow(dtype, WithRows(0, row_shape_), nullptr, nullptr)
                .row_bytes()),
        hash_(XXH3_createState(), XXH3_freeState) {
    XXH3_64bits_reset(hash_.get());
    buffer_.reserve(kBufferBytes);
  }

  void WriteHeader() {
    // If the number of rows is unknown, the header gets room for the largest
    // number, and Finish() patches it.
    const bool known = promised_rows_ >= 0;
    buffer_ =
        Header(known ? promised_rows_ : std::numeric_limits<int64_t>::max());
    header_bytes_ = buffer_.size();
    file_bytes_ = header_bytes_;
  }

  absl::Status Append(const void* data, size_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    if (row_bytes_ == 0 || bytes % row_bytes_ != 0) {
      return absl::InternalError(absl::StrCat(path_.native(), ": ", bytes,
                                              " bytes are not whole rows of ",
                                              row_bytes_));
    }
    file_bytes_ += bytes;
    if (buffer_.size() + bytes > kBufferBytes) {
      MILLRACE_RETURN_IF_ERROR(Flush());
    }
    if (bytes >= kBufferBytes) return Write(data, bytes);
    buffer_.append(static_cast<const char*>(data), bytes);
    return absl::OkStatus();
  }

  absl::StatusOr<Summary> Finish() override {
    MILLRACE_RETURN_IF_ERROR(Flush());
    Summary summary = {.rows = Rows(), .file_bytes = file_bytes_};
    if (promised_rows_ >= 0) {
      if (summary.rows != promised_rows_) {
        return absl::InternalError(
            absl::StrCat(path_.native(), ": ", summary.rows,
                         " rows were written, ", promised_rows_, " promised"));
      }
      summary.xxh3 = XXH3_64bits_digest(hash_.get());
    } else {
      MILLRACE_RETURN_IF_ERROR(PatchHeader(summary.rows));
      MILLRACE_ASSIGN_OR_RETURN(summary.xxh3, HashFile(fd_.get(), path_));
    }
    if (fsync(fd_.get()) != 0) return FileError("write", path_, errno);
    if (close(fd_.release()) != 0) return FileError("write", path_, errno);
    return summary;
  }

 private:
  std::string Header(int64_t rows) const {
    return FormatNpyHeader(dtype_, WithRows(rows, row_shape_));
  }

  int64_t Rows() const {
    // Rows of zero bytes cannot be counted, so the promised number is used.
    if (row_bytes_ == 0) return std::max<int64_t>(promised_rows_, 0);
    return static_cast<int64_t>((file_bytes_ - header_bytes_) / row_bytes_);
  }

  absl::Status Write(const void* data, size_t bytes) {
    XXH3_64bits_update(hash_.get(), data, bytes);
    return WriteAll(fd_.get(), path_, data, bytes);
  }

  absl::Status Flush() {
    MILLRACE_RETURN_IF_ERROR(Write(buffer_.data(), buffer_.size()));
    buffer_.clear();
    return absl::OkStatus();
  }

  absl::Status PatchHeader(int64_t rows) {
    const std::string header = PadHeader(Header(rows), header_bytes_);
    if (lseek(fd_.get(), 0, SEEK_SET) != 0) {
      return FileError("seek in", path_, errno);
    }
    return WriteAll(fd_.get(), path_, header.data(), header.size());
  }

  const std::filesystem::path path_;
  UniqueFd fd_;
  const DType dtype_;
  const std::vector<int64_t> row_shape_;
  const int64_t promised_rows_;  // negative if unknown
  const size_t row_bytes_;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash_;
  std::string buffer_;
  size_t header_bytes_ = 0;
  uint64_t file_bytes_ = 0;  // including what is still buffered
};

}  // namespace

absl::StatusOr<std::unique_ptr<NpyWriter>> NpyWriter::Create(
    const std::filesystem::path& path, DType dtype,
    std::vector<int64_t> row_shape, int64_t rows) {
  MILLRACE_ASSIGN_OR_RETURN(UniqueFd fd, CreateNewFile(path));
  auto writer = std::make_unique<FileNpyWriter>(path, std::move(fd), dtype,
                                                std::move(row_shape), rows);
  writer->WriteHeader();
  return writer;
}

absl::StatusOr<NpyWriter::Summary> WriteNpy(const std::filesystem::path& path,
                                            const Array& array) {
  MILLRACE_CHECK(array.present() && !array.shape().empty());
  const std::vector<int64_t> row_shape(array.shape().begin() + 1,
                                       array.shape().end());
  MILLRACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<NpyWriter> writer,
      NpyWriter::Create(path, array.dtype(), row_shape, array.rows()));
  MILLRACE_RETURN_IF_ERROR(writer->Append(array.data(), array.total_bytes()));
  return writer->Finish();
}

}  // namespace millrace
