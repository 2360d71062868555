// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/owner_output.h"

#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/file.h"
#include "common/file/npy.h"
#include "common/graph/partition_book.h"

namespace millrace {
namespace {

absl::Status WriteColumn(const RowSource& owners,
                         const std::filesystem::path& path) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, owners.Open());
  MILLRACE_ASSIGN_OR_RETURN(
      std::unique_ptr<NpyWriter> writer,
      NpyWriter::Create(path, kDTypeOf<int32_t>, {}, owners.rows()));
  std::vector<int64_t> block(kBlockRows);
  std::vector<int32_t> narrow;
  int64_t done = 0;
  while (true) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    MILLRACE_ASSIGN_OR_RETURN(const int64_t rows,
                              reader->ReadIntegers(kBlockRows, block.data()));
    if (rows == 0) break;
    narrow.clear();
    for (int64_t i = 0; i < rows; ++i, ++done) {
      if (block[i] < 0 || block[i] >= kMaxPartitions) {
        return absl::InvalidArgumentError(StrCat(
            owners.Where(done), ": ", block[i],
            " is not a partition; partitions are 0 to ", kMaxPartitions - 1));
      }
      narrow.push_back(static_cast<int32_t>(block[i]));
    }
    MILLRACE_RETURN_IF_ERROR(
        writer->Append(narrow.data(), narrow.size() * sizeof(int32_t)));
  }
  return writer->Finish().status();
}

}  // namespace

absl::Status CheckNewOwnerFile(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return absl::OkStatus();
  return WithAdvice(FieldStatus(absl::StatusCode::kAlreadyExists,
                                {.field = "assignment_out",
                                 .value = path.string(),
                                 .limit = "the file already exists"}),
                    "remove it or choose another");
}

absl::Status CheckOwners(const RawGraph& graph,
                         const std::filesystem::path& path) {
  MILLRACE_RETURN_IF_ERROR(CheckNewOwnerFile(path));
  for (const RawNodes& nodes : graph.nodes) {
    if (nodes.owner != nullptr) continue;
    return InvalidField(
        {.field = "assignment_out",
         .limit =
             StrCat("this input has no partitions of node type ", nodes.name)});
  }
  return absl::OkStatus();
}

absl::Status WriteOwners(const RawGraph& graph,
                         const std::filesystem::path& path) {
  MILLRACE_RETURN_IF_ERROR(CheckOwners(graph, path));
  if (graph.nodes.size() == 1) {
    return WriteColumn(*graph.nodes[0].owner, path);
  }
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return FileError("create", path, error.value());
  for (const RawNodes& nodes : graph.nodes) {
    MILLRACE_RETURN_IF_ERROR(
        WriteColumn(*nodes.owner, path / StrCat(nodes.name, ".npy")));
  }
  return absl::OkStatus();
}

}  // namespace millrace
