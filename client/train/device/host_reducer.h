// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "client/train/device/reducer.h"
#include "client/train/group/collectives.h"

namespace millrace {

// Adds up on the CPU. A bucket that is on another device is copied to the host
// and back by the stream in which the device computes. Its sum starts once the
// copy has ended, which Start() looks at and only Finish() waits for.
class HostReducer final : public Reducer {
 public:
  // Keeps a reference to `collectives`.
  explicit HostReducer(Collectives& collectives) : collectives_(collectives) {}

  absl::Status Start(const at::Tensor& bucket) override;
  absl::Status Finish() override;

 private:
  struct Copy {
    at::Tensor bucket;
    at::Tensor on_host;  // kept for later steps; pinned for a GPU
    c10::Event copied;   // the device has written `on_host`
  };
  void CopyToHost(const at::Tensor& bucket);
  void CopyToDevice();
  // Starts sums in the order of their buckets, up to the first whose copy has
  // not ended, or all.
  absl::Status StartSums(bool all);

  Collectives& collectives_;
  // Of buckets on another device, in the order of a step.
  std::vector<Copy> copies_;
  size_t copied_ = 0;   // in this step
  size_t started_ = 0;  // sums, in this step
  // The device has read all that an earlier step left in `on_host`.
  std::optional<c10::Event> returned_;
};

}  // namespace millrace
