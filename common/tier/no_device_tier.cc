// SPDX-License-Identifier: Apache-2.0
#include "common/tier/device_tier.h"

namespace millrace {

absl::StatusOr<std::unique_ptr<TopologySampler>> MakeDeviceSampler(
    std::shared_ptr<const Store> /*store*/, int /*device*/,
    DeviceFallback /*fallback*/) {
  return absl::FailedPreconditionError(
      "this program was built without CUDA\nbuild it with "
      "-DMILLRACE_CUDA=ON, or keep everything in host memory");
}

}  // namespace millrace
