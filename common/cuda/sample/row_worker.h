// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/cuda/graph/feature_column.h"

namespace millrace::cuda {

enum class GatherOutcome : uint8_t {
  kDone,
  kBadRow,    // there is no such row; other rows may have been gathered
  kNoMemory,  // the device does not have enough
  kFailed,    // see failure()
};

// Gathers rows on a stream of one device. One call at a time, with the device
// current; it is not safe to use after a call that failed.
class RowWorker {
 public:
  // The device must be current. Fails like CudaStatus().
  static absl::StatusOr<std::unique_ptr<RowWorker>> Create(int device);
  ~RowWorker();

  // Copies rows of `column` to `out`, which is pinned memory as the device sees
  // it. `rows`: ids of nodes if `parts` is empty, otherwise rows of the
  // partition of the same position. Nothing uses any of the memory after the
  // call.
  GatherOutcome Gather(const FeatureColumn& column,
                       std::span<const uint32_t> parts,
                       std::span<const uint64_t> rows, std::byte* out);

  // Of the last call that was done: how many of its rows were in the memory of
  // devices.
  uint64_t device_rows() const;
  // cudaSuccess if no call has failed.
  cudaError_t failure() const;

 private:
  struct State;
  RowWorker(int device, cudaStream_t stream);

  const int device_;
  const cudaStream_t stream_;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::cuda
