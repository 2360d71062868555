// SPDX-License-Identifier: Apache-2.0
// millrace-train: trains graph neural networks on batches of a fleet or of a
// store in this process.
#pragma once

namespace millrace {

// Runs the program with these arguments and returns its exit status. Call it
// only once in a process; LibTorch sets its threads only once.
int RunTrainProgram(int argc, char** argv);

}  // namespace millrace
