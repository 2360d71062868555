// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/status/statusor.h"

namespace millrace::cuda {

// A stream that does not wait for the default stream.
class Stream {
 public:
  // `device` must be current. Fails like CudaStatus().
  static absl::StatusOr<Stream> Create(int device);
  // Waits for the stream's work. The device must be current.
  ~Stream();
  Stream(Stream&& other) noexcept
      : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  explicit Stream(cudaStream_t stream) : stream_(stream) {}

  cudaStream_t stream_;
};

}  // namespace millrace::cuda
