// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>

namespace millrace {

// Waits for the work of a device's current stream when it goes, unless that is
// known to have ended, so that nothing that the work uses is freed too early.
// Threads: one.
class DeviceWork {
 public:
  explicit DeviceWork(c10::Device device) : device_(device) {}
  ~DeviceWork() {
    if (has_ended_ || device_.is_cpu()) return;
    try {
      const c10::impl::VirtualGuardImpl guard(device_.type());
      guard.getStream(device_).synchronize();
    } catch (const std::exception&) {
      // The device is lost, and reads no memory.
    }
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  // The host has waited for the work already.
  void End() { has_ended_ = true; }

 private:
  const c10::Device device_;
  bool has_ended_ = false;
};

}  // namespace millrace
