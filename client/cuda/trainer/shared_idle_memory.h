// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/cuda/runtime/device_gate.h"
#include "common/cuda/runtime/device_pool.h"

namespace millrace::cuda {

// Lets LibTorch and what samples and gathers on the same device have each
// other's memory. Both keep what they have freed for later; while one of these
// exists, each gives it back when the other finds too little. At most one may
// exist. Threads: any.
class SharedIdleMemory {
 public:
  // The device must be open.
  explicit SharedIdleMemory(int device);
  ~SharedIdleMemory();
  SharedIdleMemory(const SharedIdleMemory&) = delete;
  SharedIdleMemory& operator=(const SharedIdleMemory&) = delete;

  int device() const { return pool_->device(); }
  // Frees what is kept for sampling and gathering.
  void GiveBack() const;

 private:
  const std::shared_ptr<DevicePool> pool_;
  const DeviceGate::Reclaimer reclaimer_;
};

}  // namespace millrace::cuda
