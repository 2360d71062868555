// SPDX-License-Identifier: Apache-2.0
#include "common/file/file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace millrace {

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // Where this is refused, the process runs as it did before.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int64_t FileLimit() {
  constexpr rlim_t kMost = std::numeric_limits<int64_t>::max();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

}  // namespace millrace
