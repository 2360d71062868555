// SPDX-License-Identifier: Apache-2.0
#include "common/table/inflated_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Bounds on the number of bytes read at once, which otherwise is the file's
// size.
constexpr uint64_t kMinReadBytes = 4 << 10;
constexpr uint64_t kMaxReadBytes = 256 << 10;
constexpr Bytef kMagic[] = {0x1f, 0x8b};
constexpr int kGzipOnly = 16;  // added to the window bits for inflateInit2()

}  // namespace

absl::StatusOr<std::unique_ptr<InflatedFile>> InflatedFile::Open(
    const std::filesystem::path& path) {
  uint64_t size = 0;
  MILLRACE_ASSIGN_OR_RETURN(UniqueFd fd, OpenForReading(path, &size));
  std::unique_ptr<InflatedFile> file(
      new InflatedFile(path.string(), std::move(fd), size));
  MILLRACE_RETURN_IF_ERROR(file->Refill());
  const z_stream& read = file->stream_;
  if (read.avail_in >= sizeof(kMagic) &&
      std::equal(kMagic, kMagic + sizeof(kMagic), read.next_in)) {
    MILLRACE_RETURN_IF_ERROR(file->StartInflating());
  } else if (absl::EndsWith(file->name_, ".gz")) {
    return absl::DataLossError(
        StrCat(file->name_, ": not gzip data although its name ends in .gz (",
               size, " bytes)"));
  }
  return file;
}

InflatedFile::InflatedFile(std::string name, UniqueFd fd, uint64_t size)
    : name_(std::move(name)),
      fd_(std::move(fd)),
      input_(std::clamp(size, kMinReadBytes, kMaxReadBytes)) {}

InflatedFile::~InflatedFile() {
  if (gzip_) inflateEnd(&stream_);
}

absl::Status InflatedFile::StartInflating() {
  if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) {
    return absl::ResourceExhaustedError("zlib: no memory");
  }
  gzip_ = true;
  in_member_ = true;
  return absl::OkStatus();
}

// Leaves the input empty only at the end of the file.
absl::Status InflatedFile::Refill() {
  ssize_t count = 0;
  do {
    count = read(fd_.get(), input_.data(), input_.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return FileError("read", name_, errno);
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(count);
  return absl::OkStatus();
}

absl::StatusOr<size_t> InflatedFile::Read(char* out, size_t count) {
  count = std::min<size_t>(count, std::numeric_limits<uInt>::max());
  if (gzip_) return Inflate(out, count);
  if (stream_.avail_in == 0) MILLRACE_RETURN_IF_ERROR(Refill());
  const size_t taken = std::min<size_t>(count, stream_.avail_in);
  std::memcpy(out, stream_.next_in, taken);
  stream_.next_in += taken;
  stream_.avail_in -= static_cast<uInt>(taken);
  return taken;
}

absl::StatusOr<size_t> InflatedFile::Inflate(char* out, size_t count) {
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = static_cast<uInt>(count);
  while (stream_.avail_out > 0) {
    if (stream_.avail_in == 0) MILLRACE_RETURN_IF_ERROR(Refill());
    // A member ends with a checksum, which zlib reads after it has returned all
    // data, so a complete file does not end within a member.
    if (stream_.avail_in == 0 && in_member_) return Damaged("truncated");
    if (stream_.avail_in == 0) break;
    MILLRACE_RETURN_IF_ERROR(InflateSome());
  }
  return count - stream_.avail_out;
}

absl::Status InflatedFile::InflateSome() {
  if (!in_member_ && *stream_.next_in == 0) {  // padding, e.g. from a tape
    ++stream_.next_in;
    --stream_.avail_in;
    return absl::OkStatus();
  }
  if (!in_member_) {
    inflateReset(&stream_);
    in_member_ = true;
  }
  switch (inflate(&stream_, Z_NO_FLUSH)) {
    case Z_OK:
      return absl::OkStatus();
    case Z_STREAM_END:
      in_member_ = false;
      return absl::OkStatus();
    case Z_MEM_ERROR:
      return absl::ResourceExhaustedError("zlib: no memory");
    default:
      return Damaged("damaged");
  }
}

absl::Status InflatedFile::Damaged(const char* how) const {
  const std::string why =
      stream_.msg == nullptr ? "" : StrCat(" (", stream_.msg, ")");
  return absl::DataLossError(
      StrCat(name_, ": ", how, " gzip data", why, "\nget the file again"));
}

}  // namespace millrace
