// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/remote/device_cache.h"
#include "client/train/device/reducer.h"
#include "client/train/group/collectives.h"
#include "client/train/group/group.h"
#include "common/base/array_memory.h"
#include "common/base/host_memory.h"

namespace millrace {

// The CPU, or a device with memory of its own, that a trainer computes with.
// Threads: any.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  // As users name it, such as "cpu". All ranks of a group have the same kind.
  virtual std::string kind() const = 0;
  // Where the model, its optimizer and its minibatches are.
  virtual c10::Device device() const = 0;
  // The name for the log, such as "the CPU".
  virtual std::string name() const = 0;
  // Provides the memory of batches for the device, the same each time; null for
  // that of the process.
  virtual std::shared_ptr<ArrayMemory> memory() { return nullptr; }
  // Returns what keeps feature rows on the device for batches from servers;
  // null if nothing does.
  virtual std::shared_ptr<DeviceCache> MakeDeviceCache() { return nullptr; }
  // Checks that the device has memory for tensors that are about to be made.
  // RESOURCE_EXHAUSTED: "WHAT needs 24.1 GiB of memory, but 15.2 GiB is
  // available", with the name of the device unless that is the CPU.
  virtual absl::Status CheckMemory(std::string_view what,
                                   const MemoryNeed& need) const = 0;
  // What adds up its gradients. All ranks of a group have the same.
  virtual Backend backend() const { return Backend::kGloo; }
  // Returns what adds up gradients on the device over all ranks by that
  // backend, and keeps a reference to `collectives`. All ranks call it. Fails
  // like Collectives. FAILED_PRECONDITION: the ranks cannot use their devices
  // together (says why).
  virtual absl::StatusOr<std::unique_ptr<Reducer>> MakeReducer(
      Collectives& collectives) = 0;
};

// The CPU, which every program has.
Accelerator& CpuAccelerator();

// A kind of device besides the CPU that a program can train on.
struct AcceleratorKind {
  std::string name;                  // as users name it
  Backend backend = Backend::kGloo;  // unless users choose another
  // Returns how many there are for this process, at least 1. Fails like `open`.
  std::function<absl::StatusOr<int>()> count;
  // Opens the device for a rank. FAILED_PRECONDITION: there is none that works,
  // or none for this rank. UNAVAILABLE: it has failed. RESOURCE_EXHAUSTED: its
  // memory is full. All say why, and what to do.
  std::function<absl::StatusOr<std::unique_ptr<Accelerator>>(
      const GroupAddress& rank, Backend backend)>
      open;
};

}  // namespace millrace
