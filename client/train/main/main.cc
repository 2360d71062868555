// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/train_program.h"

int main(int argc, char** argv) {
  return millrace::RunTrainProgram(argc, argv);
}
