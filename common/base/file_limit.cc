// SPDX-License-Identifier: Apache-2.0
#include "common/base/file_limit.h"

#include <sys/resource.h>

namespace millrace {

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // Where this is refused, the process runs as it did before.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace millrace
