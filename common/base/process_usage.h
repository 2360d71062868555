// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// User and system time of all threads of this process so far.
double ProcessCpuSeconds();

// Most memory that this process ever held; pages of mapped files count.
int64_t ProcessPeakRssBytes();

}  // namespace millrace
