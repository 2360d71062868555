// SPDX-License-Identifier: Apache-2.0
// millrace-train: trains graph neural networks on batches of a fleet or of a
// store in this process.
#pragma once

#include <vector>

#include "client/train/device/accelerator.h"

namespace millrace {

// Runs the program with these arguments and returns its exit status. `kinds`:
// the devices that it can train on besides the CPU; without any, --device cuda
// runs millrace-train-cuda. Call it only once in a process; LibTorch sets its
// threads only once.
int RunTrainProgram(int argc, char** argv,
                    const std::vector<AcceleratorKind>& kinds = {});

}  // namespace millrace
