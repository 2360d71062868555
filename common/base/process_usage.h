// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// User and system time that all threads of this process have used so far.
double ProcessCpuSeconds();

// Peak resident memory of this process, including pages of mapped files.
int64_t ProcessPeakRssBytes();

}  // namespace millrace
