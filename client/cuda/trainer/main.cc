// SPDX-License-Identifier: Apache-2.0
// The trainer for GPUs, which the one for the CPU runs in its place.
#include <cstdlib>

#include "client/cuda/trainer/cuda_accelerator.h"
#include "client/train/main/cuda_program.h"
#include "client/train/main/train_program.h"

int main(int argc, char** argv) {
  // Without this cuBLAS may add in another order each time. Its documentation
  // has the value.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  const millrace::AcceleratorKind kind = millrace::cuda::CudaAcceleratorKind();
  return millrace::IsProbe(argc, argv)
             ? millrace::AnswerProbe(argc, argv, kind)
             : millrace::RunTrainProgram(argc, argv, {kind});
}
