// SPDX-License-Identifier: Apache-2.0
#pragma once

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
};

// Gathers rows on a stream of one device.
// Not thread-safe. The device must be the current one of the thread, except to
// destroy it.
class RowWorker {
 public:
  // Fails like CudaStatus().
  static absl::StatusOr<std::unique_ptr<RowWorker>> Create(int device);
  ~RowWorker();

  // Copies rows of `column` to `out`, which is memory of the device, or pinned
  // memory as the device sees it. `rows`: ids of nodes if `parts` is empty,
  // otherwise rows of the partition of the same position. Nothing uses any of
  // the memory after the call. Fails like CudaStatus().
  absl::StatusOr<GatherOutcome> Gather(const FeatureColumn& column,
                                       std::span<const uint32_t> parts,
                                       std::span<const uint64_t> rows,
                                       std::byte* out);

  // Of the last call that was done: how many of its rows were in the memory of
  // devices.
  uint64_t device_rows() const;
  // Whether it does nothing any more.
  bool failed() const;

 private:
  struct State;
  RowWorker(int device, std::unique_ptr<State> state);

  const int device_;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::cuda
