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

// Returns the number of devices that the process sees, at least 1. Opens none.
// Fails like OpenDevice().
absl::StatusOr<int> CountDevices();

// Makes a device ready to run this program's kernels, and to keep the memory
// that streams free for their next allocations.
// FAILED_PRECONDITION: there is no driver or device, or it cannot run the
// kernels. UNAVAILABLE: the device does not work.
absl::StatusOr<DeviceInfo> OpenDevice(int index);

// Makes a device the calling thread's current one, which the runtime's calls
// use, for its own lifetime. Afterwards a thread that had not chosen a device
// keeps this one, since the runtime opens each device that is made current, and
// the process may have no business with device 0.
class ScopedDevice {
 public:
  explicit ScopedDevice(int device);
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

  // FAILED_PRECONDITION: there is no such device.
  const absl::Status& status() const { return status_; }

 private:
  const int device_;
  const int outer_;  // the device of the ScopedDevice around it, or -1
  int before_ = -1;  // what the thread had chosen, or -1
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
