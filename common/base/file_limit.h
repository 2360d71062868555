// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

// Lets this process have as many open files, and so connections, as it may:
// the soft limit, which is often 1,024, becomes the hard one.
void RaiseFileLimit();

}  // namespace millrace
