// SPDX-License-Identifier: Apache-2.0
#include "common/base/trace_limit.h"

namespace millrace {
namespace {

constexpr int kPerSecond = 10;

}  // namespace

// They outlive all threads.
LogLimit& SlowBatchLimit() {
  static LogLimit& limit = *new LogLimit(kPerSecond);
  return limit;
}

LogLimit& SlowCallLimit() {
  static LogLimit& limit = *new LogLimit(kPerSecond);
  return limit;
}

}  // namespace millrace
