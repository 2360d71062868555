// SPDX-License-Identifier: Apache-2.0
#include "common/cli/partition_list.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {

absl::StatusOr<std::vector<int>> ParsePartitions(const std::string& text) {
  if (text == "all") return std::vector<int>();
  std::vector<int> partitions;
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(piece, &number) || number < 0) {
      return UsageError(
          StrCat("--partition ", text, ": \"", std::string(piece),
                 "\" is not a partition; use a number, a list 0,2 or all"));
    }
    partitions.push_back(number);
  }
  std::sort(partitions.begin(), partitions.end());
  partitions.erase(std::unique(partitions.begin(), partitions.end()),
                   partitions.end());
  return partitions;
}

}  // namespace millrace
