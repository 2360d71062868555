// SPDX-License-Identifier: Apache-2.0
#include "common/graph/damaged_file.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr std::string_view kFileUrl = "millrace/damaged-file";

}  // namespace

absl::Status DamagedFile(const Store& store, std::string_view file,
                         std::string_view what) {
  absl::Status status = absl::DataLossError(
      StrCat((store.path() / file).string(), " ", what,
             "\nrestore the store from a copy and verify it"));
  status.SetPayload(AbslView(kFileUrl), absl::Cord(AbslView(file)));
  return status;
}

std::string FindDamagedFile(const absl::Status& status) {
  const auto file = status.GetPayload(AbslView(kFileUrl));
  return file.has_value() ? std::string(*file) : std::string();
}

std::optional<int> PartitionOfFile(std::string_view file) {
  constexpr std::string_view kPart = "part-";
  if (!file.starts_with(kPart)) return std::nullopt;
  file.remove_prefix(kPart.size());
  int part = 0;
  if (!absl::SimpleAtoi(AbslView(file.substr(0, file.find('/'))), &part)) {
    return std::nullopt;
  }
  return part;
}

}  // namespace millrace
