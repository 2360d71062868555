// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"

namespace millrace {

// Libraries that add up gradients: Gloo those in the host's memory, NCCL those
// of GPUs.
enum class Backend : uint8_t { kGloo, kNccl };

// Adds up gradients over the ranks of a group, in buckets, while the next ones
// are computed: for each step, Start() for every bucket and then Finish(). All
// ranks make the same calls, with tensors of equal size in the same order; also
// a rank without a batch. All ranks get the same bits.
// Errors: those of Collectives. After an error, what Start() was given is
// garbage.
// Threads: one at a time.
class Reducer {
 public:
  virtual ~Reducer() = default;

  // Starts to add up `bucket` in place: kFloat, contiguous, and left alone
  // until Finish() has returned. Waits for the work that the device's current
  // stream has now, but the caller does not.
  virtual absl::Status Start(const at::Tensor& bucket) = 0;
  // Waits until all sums so far are there for later work of the device's
  // current stream, and for the host if it is the device.
  virtual absl::Status Finish() = 0;
};

}  // namespace millrace
