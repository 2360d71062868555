// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Raises the soft limit on open files, and so on connections, which is often
// 1,024, to the hard limit.
void RaiseFileLimit();

// How many files this process may have open; the soft limit.
int64_t FileLimit();

}  // namespace millrace
