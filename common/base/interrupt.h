// SPDX-License-Identifier: Apache-2.0
// Turns Ctrl-C and SIGTERM into a flag that long loops check, so that programs
// unwind and clean up.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace millrace {

// From now on the first SIGINT or SIGTERM sets the flag; a second one ends
// the process at once. Idempotent.
void InstallInterruptHandler();

bool Interrupted();
// "SIGINT" or "SIGTERM", whichever came; empty if none did.
std::string InterruptName();

// CANCELLED once interrupted, OK before. Any thread may call it.
absl::Status CheckInterrupted();

}  // namespace millrace
