// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM as a flag that long loops look at, so that programs
// unwind and clean up.
#pragma once

#include "absl/status/status.h"

namespace millrace {

// From now on the first SIGINT or SIGTERM sets the flag; a second one ends
// the process at once. Idempotent.
void InstallInterruptHandler();

bool Interrupted();

// CANCELLED once interrupted, else OK. Any thread.
absl::Status CheckInterrupted();

}  // namespace millrace
