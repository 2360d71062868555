// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace::cuda {

struct DeviceInfo {
  int index = 0;  // among the devices that the process sees
  std::string name;
  int major = 0, minor = 0;  // compute capability
};

// Makes a device ready to run this program's kernels, and to keep the memory
// that streams free for their next allocations.
// FAILED_PRECONDITION: there is no driver or device, or it cannot run the
// kernels. UNAVAILABLE: the device does not work.
absl::StatusOr<DeviceInfo> OpenDevice(int index);

// Makes a device the calling thread's current one, which the runtime's calls
// use, for its own lifetime.
class ScopedDevice {
 public:
  explicit ScopedDevice(int device);
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

  // FAILED_PRECONDITION: there is no such device.
  const absl::Status& status() const { return status_; }

 private:
  int before_ = 0;
  absl::Status status_;
};

struct DeviceMemoryUse {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};
// Returns how much memory an open device has.
absl::StatusOr<DeviceMemoryUse> MemoryUseOf(int device);

// Gives memory that streams have freed back to the device, so that cudaMalloc()
// and other processes get it too.
void TrimMemory(int device);

}  // namespace millrace::cuda
