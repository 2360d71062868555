// SPDX-License-Identifier: Apache-2.0
// millrace-train-cuda: millrace-train for GPUs, which it runs in its place.
#include <cstdio>
#include <string>
#include <string_view>

#include "client/cuda/trainer/cuda_accelerator.h"
#include "client/train/main/cuda_program.h"
#include "client/train/main/train_program.h"

namespace millrace {
namespace {

// Prints errors as RunProgram() does.
int ProbeDevice() {
  const auto opened = cuda::CudaAcceleratorKind().open(GroupAddress());
  if (opened.ok()) return 0;
  const std::string message(opened.status().message());
  const size_t end = message.find('\n');
  std::fprintf(stderr, "millrace-train: %s\n", message.substr(0, end).c_str());
  if (end != std::string::npos) {
    std::fprintf(stderr, "millrace-train: %s\n",
                 message.substr(end + 1).c_str());
  }
  return 1;
}

}  // namespace
}  // namespace millrace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == millrace::kProbeDevice) {
    return millrace::ProbeDevice();
  }
  return millrace::RunTrainProgram(argc, argv,
                                   {millrace::cuda::CudaAcceleratorKind()});
}
