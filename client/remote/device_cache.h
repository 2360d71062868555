// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"

namespace millrace {

// Keeps feature rows in the memory of a GPU, and puts those that a batch needs
// into the batch's features there, so that they never move. Calls block until
// the GPU has done their work.
// Errors of all calls: UNAVAILABLE: the GPU has failed (names it).
// Threads: any.
class DeviceCache {
 public:
  virtual ~DeviceCache() = default;

  // The GPU, as CUDA counts those that the process sees.
  virtual int device() const = 0;

  // How much of the GPU's memory is free, in bytes.
  virtual absl::StatusOr<uint64_t> FreeBytes() = 0;

  // Returns an uninitialised array on the GPU.
  // RESOURCE_EXHAUSTED: there is too little memory (has both sizes).
  virtual absl::StatusOr<Array> Allocate(DType dtype,
                                         std::vector<int64_t> shape) = 0;

  // Copies `rows` [n, d], which are on the host, over those of `held` from the
  // `first`th on. `held` is an array of Allocate() whose rows are alike.
  // RESOURCE_EXHAUSTED: as for Allocate().
  virtual absl::Status Write(const Array& rows, int64_t first, Array held) = 0;

  // Returns a new array on the GPU, with the dtype and shape of `received`
  // [n, d], which is on the host and best in memory for the GPU (see
  // ArrayMemory). Row i is row places[i] of `held` or, where that is negative,
  // row i of `received`. `held` is an array of Allocate() whose rows are alike.
  // The result may outlive this object. Its last copy may go once the work that
  // reads it has ended.
  // RESOURCE_EXHAUSTED: as for Allocate().
  virtual absl::StatusOr<Array> Merge(const Array& held,
                                      std::span<const int64_t> places,
                                      const Array& received) = 0;
};

}  // namespace millrace
