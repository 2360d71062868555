// SPDX-License-Identifier: Apache-2.0
#include "common/base/trace_limit.h"

namespace millrace {

LogLimit& TraceLimit() {
  static LogLimit& limit = *new LogLimit(10);  // outlives all threads
  return limit;
}

}  // namespace millrace
