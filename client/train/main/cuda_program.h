// SPDX-License-Identifier: Apache-2.0
// The way from millrace-train to millrace-train-cuda, which does the same on
// GPUs but needs several GB of libraries.
#pragma once

#include "absl/status/status.h"
#include "client/train/device/accelerator.h"

namespace millrace {

// Whether millrace-train-cuda was started only to find out whether it could
// train.
bool IsProbe(int argc, char** argv);
// Answers that: returns the exit status, and prints why the device of this kind
// that is for this process cannot be used.
int AnswerProbe(int argc, char** argv, const AcceleratorKind& kind);

// Runs millrace-train-cuda, which is beside this program, with the same
// arguments in the place of this process. `alone`: the process is no rank of
// the group that its environment describes. Returns only if it could not train.
// FAILED_PRECONDITION: it is not there, or does not start, or finds no GPU that
// works (says which). CANCELLED: interrupted.
absl::Status RunCudaProgram(char** argv, bool alone);

}  // namespace millrace
