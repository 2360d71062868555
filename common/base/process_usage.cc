// SPDX-License-Identifier: Apache-2.0
#include "common/base/process_usage.h"

#include <sys/resource.h>

#include "absl/time/time.h"

namespace millrace {
namespace {

rusage Usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

}  // namespace

double ProcessCpuSeconds() {
  const rusage usage = Usage();
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

int64_t ProcessPeakRssBytes() { return int64_t{Usage().ru_maxrss} * 1024; }

}  // namespace millrace
