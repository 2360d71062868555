// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Lets this process have as many open files, and so connections, as it may:
// the soft limit, which is often 1,024, becomes the hard one.
void RaiseFileLimit();

// How many files this process may have open.
int64_t FileLimit();

}  // namespace millrace
