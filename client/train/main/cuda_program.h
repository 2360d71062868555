// SPDX-License-Identifier: Apache-2.0
// The way from millrace-train to millrace-train-cuda, which does the same on
// GPUs but needs several GB of libraries.
#pragma once

#include "absl/status/status.h"

namespace millrace {

// The only argument with which millrace-train-cuda says whether it could train:
// it ends with status 0, or prints why not and ends with 1.
inline constexpr char kProbeDevice[] = "--probe-device";

// Runs millrace-train-cuda, which is beside this program, with the same
// arguments in the place of this process. Returns only if it could not train.
// FAILED_PRECONDITION: it is not there, or does not start, or finds no GPU that
// works (says which). CANCELLED: interrupted.
absl::Status RunCudaProgram(char** argv);

}  // namespace millrace
