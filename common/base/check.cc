// SPDX-License-Identifier: Apache-2.0
#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace millrace {

void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: check failed: %s (a bug in millrace)\n", file,
               line, what);
  std::fflush(stderr);
  std::abort();
}

}  // namespace millrace
