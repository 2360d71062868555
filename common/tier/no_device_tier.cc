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

absl::Status CheckDevices(const std::vector<int>& /*gpus*/) {
  return WithoutCuda();
}

std::vector<GpuMemory> MemoryOfDevices(const std::vector<int>& /*gpus*/) {
  return {};
}

absl::StatusOr<Array> AllocatePinned(int /*gpu*/, DType /*dtype*/,
                                     const std::vector<int64_t>& /*shape*/) {
  return WithoutCuda();
}

absl::StatusOr<DeviceSamplers> MakeDeviceSamplers(
    const std::shared_ptr<const Store>& /*store*/, bool /*pinned*/,
    const std::vector<int>& /*gpus*/, DeviceFallback /*fallback*/) {
  return WithoutCuda();
}

absl::StatusOr<bool> ReachEachOther(const std::vector<int>& /*gpus*/) {
  return WithoutCuda();
}

absl::StatusOr<DeviceRows> MakeDeviceFeatures(
    const std::shared_ptr<const Store>& /*store*/,
    const std::vector<int>& /*gpus*/, double /*ratio*/) {
  return WithoutCuda();
}

}  // namespace millrace
