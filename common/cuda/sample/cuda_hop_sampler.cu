// SPDX-License-Identifier: Apache-2.0
// HopSampler for CUDA streams; the one place where nvcc compiles the kernels.
#include "common/cuda/sample/cuda_queue.cuh"
#include "common/cuda/sample/hop_sampler.cuh"

namespace millrace::cuda {

template class HopSampler<CudaQueue>;

}  // namespace millrace::cuda
