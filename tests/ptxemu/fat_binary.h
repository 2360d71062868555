// SPDX-License-Identifier: Apache-2.0
// Finds the PTX in what nvcc embeds in a program.
#pragma once

#include <string>

namespace millrace::ptxemu {

// Returns the PTX of the newest architecture in the fat binary that a program
// registers; empty, with a message on stderr, if there is none. Ends the
// process if `wrapper` is not a fat binary.
std::string ExtractPtx(const void* wrapper);

}  // namespace millrace::ptxemu
