// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/train/device/accelerator.h"

namespace millrace::cuda {

// GPUs as trainers use them, named "cuda". A rank takes the GPU of its place on
// its host, or the only one that it sees. Gradients are added up by NCCL unless
// users choose Gloo.
// Opening fails with FAILED_PRECONDITION: there is no driver or GPU that works,
// or fewer GPUs than the host has ranks, or the rank's place is not known.
// UNAVAILABLE: the GPU has failed. RESOURCE_EXHAUSTED: its memory is full.
AcceleratorKind CudaAcceleratorKind();

}  // namespace millrace::cuda
