// SPDX-License-Identifier: Apache-2.0
#include "common/graph/partitions_on_host.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <system_error>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/store.h"

namespace millrace {
namespace {

// How many partitions a message names.
constexpr size_t kMostNamed = 16;

// "0, 2"
std::string Numbers(const std::vector<int>& partitions) {
  const absl::Span<const int> all(partitions);
  if (all.size() <= kMostNamed) return absl::StrJoin(all, ", ");
  return StrCat(absl::StrJoin(all.first(kMostNamed), ", "), " and ",
                all.size() - kMostNamed, " more");
}

}  // namespace

std::vector<int> PartitionsOnHost(const std::filesystem::path& root,
                                  int partition_count) {
  std::vector<int> here;
  for (int part = 0; part < partition_count; ++part) {
    std::error_code error;
    const auto type =
        std::filesystem::status(root / PartName(part), error).type();
    // What cannot be looked at (for lack of permission) is reported when its
    // files are opened.
    if (type != std::filesystem::file_type::not_found) here.push_back(part);
  }
  return here;
}

absl::StatusOr<std::vector<int>> ChoosePartitions(
    const std::filesystem::path& root, int partition_count,
    std::vector<int> wanted) {
  if (wanted.empty()) {
    wanted.resize(static_cast<size_t>(partition_count));
    std::iota(wanted.begin(), wanted.end(), 0);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (const int part : wanted) {
    if (part >= 0 && part < partition_count) continue;
    return absl::OutOfRangeError(StrCat("no partition ", part, " in ",
                                        root.native(), "; it has 0 to ",
                                        partition_count - 1));
  }
  MILLRACE_RETURN_IF_ERROR(
      CheckOnHost(root, wanted, PartitionsOnHost(root, partition_count)));
  return wanted;
}

absl::Status CheckOnHost(const std::filesystem::path& root,
                         const std::vector<int>& wanted,
                         const std::vector<int>& here) {
  std::vector<int> missing;
  std::set_difference(wanted.begin(), wanted.end(), here.begin(), here.end(),
                      std::back_inserter(missing));
  if (missing.empty()) return absl::OkStatus();
  const bool one = missing.size() == 1;
  return absl::NotFoundError(
      StrCat(PartitionsText(missing), " of ", root.native(),
             one ? " is" : " are", " not on this host: it has ",
             here.empty() ? "none of them" : Numbers(here), "\ncopy ",
             PartName(missing.front()), one ? "" : " and the others",
             " from a host that has ", one ? "it" : "them",
             ", or name partitions that are here"));
}

std::string PartitionsText(const std::vector<int>& partitions) {
  return StrCat(partitions.size() == 1 ? "partition " : "partitions ",
                Numbers(partitions));
}

}  // namespace millrace
