// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/name_output.h"

#include <cstddef>
#include <string>
#include <system_error>

#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"

namespace millrace {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

absl::Status WriteLines(const std::deque<std::string>& lines,
                        const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(const UniqueFd fd, CreateNewFile(path));
  std::string block;
  const auto flush = [&]() -> absl::Status {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_RETURN_IF_ERROR(
        WriteAll(fd.get(), path, block.data(), block.size()));
    block.clear();
    return absl::OkStatus();
  };
  for (const std::string& line : lines) {
    block += line;
    block += '\n';
    if (block.size() >= kBlockBytes) MILLRACE_RETURN_IF_ERROR(flush());
  }
  MILLRACE_RETURN_IF_ERROR(flush());
  return SyncPath(path);
}

}  // namespace

absl::Status CheckNames(const RawGraph& graph,
                        const std::filesystem::path& directory) {
  if (graph.names.empty()) {
    return WithAdvice(
        InvalidField({.field = "names_out",
                      .limit = "this input has numbers instead of names"}),
        "leave it out");
  }
  for (const RawNames& names : graph.names) {
    std::error_code error;
    const std::filesystem::path path = directory / names.file;
    if (!std::filesystem::exists(path, error)) continue;
    return WithAdvice(
        FieldStatus(absl::StatusCode::kAlreadyExists,
                    {.field = "names_out",
                     .value = directory.string(),
                     .limit = StrCat("file ", names.file, " exists")}),
        "remove it or choose another folder");
  }
  return absl::OkStatus();
}

absl::Status WriteNames(const RawGraph& graph,
                        const std::filesystem::path& directory) {
  MILLRACE_RETURN_IF_ERROR(CheckNames(graph, directory));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return FileError("create", directory, error.value());
  for (const RawNames& names : graph.names) {
    MILLRACE_RETURN_IF_ERROR(WriteLines(*names.names, directory / names.file));
  }
  return absl::OkStatus();
}

}  // namespace millrace
