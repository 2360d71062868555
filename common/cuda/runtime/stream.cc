// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/stream.h"

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"

namespace millrace::cuda {

absl::StatusOr<Stream> Stream::Create(int device) {
  cudaStream_t stream = nullptr;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                 StrCat("cannot make a stream of CUDA device ", device)));
  return Stream(stream);
}

Stream::~Stream() {
  if (stream_ == nullptr) return;
  IgnoreFailure(cudaStreamSynchronize(stream_));
  IgnoreFailure(cudaStreamDestroy(stream_));
}

}  // namespace millrace::cuda
