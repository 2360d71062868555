// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::cuda {

// Lets LibTorch's dispatcher use the kernels of client/cuda/layers/ for the
// operators of client/nn/operators/operators.h. Threads: any.
void UseCudaOperators();

}  // namespace millrace::cuda
