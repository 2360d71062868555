// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/cuda/runtime/block_pool.h"
#include "common/cuda/runtime/device_gate.h"

namespace millrace::cuda {

// Blocks of a device's memory, for arrays of batches that stay there. A block
// may be used again as soon as it is freed, on any stream: all work on it must
// have ended by then.
class DevicePool final : public BlockPool {
 public:
  static constexpr uint64_t kMaxIdleBytes = uint64_t{256} << 20;

  // The device must be open.
  static std::shared_ptr<DevicePool> Create(
      int device, uint64_t max_idle_bytes = kMaxIdleBytes);
  // The pool of a device, which all its users in this process share. It lives
  // as long as they and its blocks do.
  static std::shared_ptr<DevicePool> Of(int device);
  ~DevicePool() override { DropIdle(); }

  int device() const { return device_; }

  // As Allocate(), but returns null if there is not that much.
  absl::StatusOr<std::shared_ptr<std::byte>> AllocateIfRoom(uint64_t bytes);

 private:
  DevicePool(int device, uint64_t max_idle_bytes);

  absl::StatusOr<std::byte*> Make(uint64_t bytes) const override;
  void Free(std::byte* block) const override;

  const int device_;
  const DeviceGate::Reclaimer reclaimer_;  // last: uses the others
};

}  // namespace millrace::cuda
