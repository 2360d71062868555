// SPDX-License-Identifier: Apache-2.0
// millrace: the program for data and operations.
#pragma once

namespace millrace {

// Runs the program with these arguments and returns its exit status.
int RunMillraceProgram(int argc, char** argv);

}  // namespace millrace
