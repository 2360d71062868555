// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// CPU time, user and system, that all threads of this process have used so far.
double ProcessCpuSeconds();

// Peak resident memory of this process so far, including mapped files' pages.
int64_t ProcessPeakRssBytes();

}  // namespace millrace
