// SPDX-License-Identifier: Apache-2.0
#include "client/cli/millrace_program.h"

int main(int argc, char** argv) {
  return millrace::RunMillraceProgram(argc, argv);
}
