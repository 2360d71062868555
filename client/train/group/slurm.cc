// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/slurm.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/strings.h"

namespace millrace {

absl::StatusOr<std::string> FirstSlurmHost(std::string_view list) {
  const absl::Status malformed = absl::InvalidArgumentError(
      StrCat("\"", list, "\" is not a list of hosts"));
  std::string host;
  while (!list.empty() && list[0] != ',') {
    if (list[0] != '[') {
      host += list[0];
      list.remove_prefix(1);
      continue;
    }
    const size_t close = list.find(']');
    if (close == std::string_view::npos) return malformed;
    const std::string_view ranges = list.substr(1, close - 1);
    const std::string_view first = ranges.substr(0, ranges.find_first_of(",-"));
    if (first.empty()) return malformed;
    host += first;
    list.remove_prefix(close + 1);
  }
  if (host.empty()) return malformed;
  return host;
}

absl::StatusOr<int> SlurmTasksOnHost(std::string_view list, int host) {
  for (absl::string_view part : absl::StrSplit(AbslView(list), ',')) {
    int hosts = 1;
    int tasks = 0;
    const size_t times = part.find("(x");
    if (times != absl::string_view::npos) {
      absl::string_view count = part.substr(times + 2);
      if (!absl::ConsumeSuffix(&count, ")") ||
          !absl::SimpleAtoi(count, &hosts)) {
        break;
      }
    }
    if (!absl::SimpleAtoi(part.substr(0, times), &tasks) || tasks < 1) break;
    if (host < hosts) return tasks;
    host -= hosts;
  }
  return absl::InvalidArgumentError(
      StrCat("\"", list, "\" does not say how many tasks a host has"));
}

}  // namespace millrace
