// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/array_memory.h"
#include "common/cuda/graph/device_graph.h"
#include "common/cuda/graph/device_members.h"
#include "common/cuda/sample/device_workers.h"

namespace millrace::cuda {

// A device with a graph to sample from.
struct SamplingDevice {
  std::unique_ptr<DeviceGraph> graph;
  std::unique_ptr<DeviceMembers> members;
  std::unique_ptr<DeviceWorkers> workers;
};

// Devices that have the same graph, and share the work. Threads: any.
class SamplingDevices {
 public:
  // There must be at least one.
  explicit SamplingDevices(std::vector<SamplingDevice> devices)
      : devices_(std::move(devices)) {}

  // Returns the device `wanted` if it is among them, and otherwise all in turn.
  const SamplingDevice& Next(int wanted = kHost) {
    for (const SamplingDevice& device : devices_) {
      if (device.graph->device() == wanted) return device;
    }
    return devices_[turn_++ % devices_.size()];
  }

  // How often the host has waited for any of them.
  uint64_t waits() const {
    uint64_t waits = 0;
    for (const SamplingDevice& device : devices_) {
      waits += device.workers->waits();
    }
    return waits;
  }

 private:
  const std::vector<SamplingDevice> devices_;
  std::atomic<uint64_t> turn_ = 0;
};

}  // namespace millrace::cuda
