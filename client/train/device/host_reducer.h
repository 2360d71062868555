// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/train/device/reducer.h"
#include "client/train/group/collectives.h"

namespace millrace {

// Adds up on the CPU, by way of copies of buckets that are on another device.
class HostReducer final : public Reducer {
 public:
  // Keeps a reference to `collectives`.
  explicit HostReducer(Collectives& collectives) : collectives_(collectives) {}

  absl::Status Start(const at::Tensor& bucket) override;
  absl::Status Finish() override;

 private:
  struct Copy {
    at::Tensor bucket;
    at::Tensor on_host;
  };

  Collectives& collectives_;
  std::vector<Copy> copies_;  // of buckets on another device
};

}  // namespace millrace
