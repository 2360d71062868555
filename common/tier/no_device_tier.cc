// SPDX-License-Identifier: Apache-2.0
#include "common/tier/device_tier.h"

namespace millrace {
namespace {

absl::Status WithoutCuda() {
  return absl::FailedPreconditionError(
      "this program was built without CUDA\nbuild it with "
      "-DMILLRACE_CUDA=ON, or keep everything in host memory");
}

}  // namespace

absl::Status CheckDevice(int /*device*/) { return WithoutCuda(); }

absl::StatusOr<Array> AllocatePinned(DType /*dtype*/,
                                     const std::vector<int64_t>& /*shape*/) {
  return WithoutCuda();
}

absl::StatusOr<std::unique_ptr<TopologySampler>> MakeDeviceSampler(
    const std::shared_ptr<const Store>& /*store*/, bool /*pinned*/,
    int /*device*/, DeviceFallback /*fallback*/) {
  return WithoutCuda();
}

}  // namespace millrace
