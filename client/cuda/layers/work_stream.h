// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace millrace::cuda::layers {

// Where the work of a call is queued, and who gives it memory meanwhile.
struct WorkStream {
  // A stream of the current device.
  cudaStream_t stream = nullptr;
  // Returns `bytes` (> 0) bytes of the device's memory, aligned to 256 bytes,
  // or null if there is not enough. The call's work uses them; once the call
  // has returned, work that is queued on the stream later may use them too.
  // What it throws passes through the call, whose results are then undefined.
  std::function<void*(size_t bytes)> allocate;
};

}  // namespace millrace::cuda::layers
