// SPDX-License-Identifier: Apache-2.0
// millrace-train-cuda: millrace-train for GPUs.
#include "client/cuda/trainer/cuda_accelerator.h"
#include "client/train/main/train_program.h"

int main(int argc, char** argv) {
  return millrace::RunTrainProgram(argc, argv,
                                   {millrace::cuda::CudaAcceleratorKind()});
}
