// SPDX-License-Identifier: Apache-2.0
#include "common/graph/store_writer.h"

#include <algorithm>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/file/file.h"
#include "common/graph/manifest_checks.h"

namespace millrace {
namespace fs = std::filesystem;
namespace {

constexpr char kScratch[] = ".scratch";

absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return FileError("create", folder, error.value());
  return absl::OkStatus();
}

// A UUID of version 4, variant 1 (RFC 4122).
std::string RandomUuid() {
  std::random_device random;
  const uint32_t a = random();
  const uint32_t b = random();
  const uint32_t c = random();
  const uint32_t d = random();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%04x%08x", a, b >> 16, b & 0xfff,
                         (c >> 16 & 0x3fff) | 0x8000, c & 0xffff, d);
}

absl::Status LinkOrCopy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error) return absl::OkStatus();
  fs::copy_file(from, to, error);
  if (error) {
    return FileError(absl::StrCat("copy ", from.native(), " to"), to,
                     error.value());
  }
  return SyncPath(to);
}

}  // namespace

absl::StatusOr<StoreWriter> StoreWriter::Create(const fs::path& target) {
  MILLRACE_ASSIGN_OR_RETURN(AtomicDirectory directory,
                            AtomicDirectory::Create(target));
  StoreWriter writer(std::move(directory));
  MILLRACE_RETURN_IF_ERROR(MakeFolder(writer.scratch()));
  return writer;
}

absl::Status StoreWriter::Write(const std::string& relative_path,
                                const Array& array) {
  const std::vector<int64_t> row_shape(array.shape().begin() + 1,
                                       array.shape().end());
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<NpyWriter> writer,
      Open(relative_path, array.dtype(), row_shape, array.rows()));
  MILLRACE_RETURN_IF_ERROR(writer->Append(array.data(), array.total_bytes()));
  return Close(relative_path, std::move(writer));
}

absl::StatusOr<std::unique_ptr<NpyWriter>> StoreWriter::Open(
    const std::string& relative_path, DType dtype,
    std::vector<int64_t> row_shape, int64_t rows) {
  const fs::path file = directory_.path() / relative_path;
  MILLRACE_RETURN_IF_ERROR(MakeFolder(file.parent_path()));
  return NpyWriter::Create(file, dtype, std::move(row_shape), rows);
}

absl::Status StoreWriter::Close(const std::string& relative_path,
                                std::unique_ptr<NpyWriter> writer) {
  MILLRACE_ASSIGN_OR_RETURN(const NpyWriter::Summary summary, writer->Finish());
  files_.push_back({.path = relative_path,
                    .bytes = summary.file_bytes,
                    .xxh3 = summary.xxh3});
  return absl::OkStatus();
}

absl::Status StoreWriter::CopyFrom(const fs::path& store_root,
                                   const FileInfo& file) {
  const fs::path to = directory_.path() / file.path;
  MILLRACE_RETURN_IF_ERROR(MakeFolder(to.parent_path()));
  MILLRACE_RETURN_IF_ERROR(LinkOrCopy(store_root / file.path, to));
  std::error_code error;
  const uint64_t bytes = fs::file_size(to, error);
  if (error) return FileError("stat", to, error.value());
  if (bytes != file.bytes) {
    return absl::DataLossError(
        absl::StrCat((store_root / file.path).native(), " has ", bytes,
                     " bytes, but its store.json says ", file.bytes));
  }
  files_.push_back(file);
  return absl::OkStatus();
}

fs::path StoreWriter::scratch() const { return directory_.path() / kScratch; }

absl::Status StoreWriter::Commit(Manifest manifest) {
  std::sort(
      files_.begin(), files_.end(),
      [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
  manifest.files = std::move(files_);
  manifest.uuid = RandomUuid();
  // Do not publish a store that readers would refuse.
  if (absl::Status valid = ValidateManifest(manifest); !valid.ok()) {
    return absl::Status(valid.code(), absl::StrCat(directory_.target().native(),
                                                   ": ", valid.message()));
  }
  SetFingerprints(manifest);
  if (manifest.dataset_fingerprint.empty()) {
    manifest.dataset_fingerprint = manifest.fingerprint;
  }
  std::error_code error;
  fs::remove_all(scratch(), error);
  if (error) return FileError("remove", scratch(), error.value());
  MILLRACE_RETURN_IF_ERROR(
      WriteNewFile(directory_.path() / "store.json", FormatManifest(manifest)));
  return directory_.Commit();
}

}  // namespace millrace
