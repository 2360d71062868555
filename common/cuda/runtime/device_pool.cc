// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device_pool.h"

#include <map>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device_memory.h"

namespace millrace::cuda {

DevicePool::DevicePool(int device, uint64_t max_idle_bytes)
    : BlockPool(max_idle_bytes),
      device_(device),
      reclaimer_(DeviceGate::Of(device), [this] { DropIdle(); }) {}

std::shared_ptr<DevicePool> DevicePool::Create(int device,
                                               uint64_t max_idle_bytes) {
  return std::shared_ptr<DevicePool>(new DevicePool(device, max_idle_bytes));
}

std::shared_ptr<DevicePool> DevicePool::Of(int device) {
  struct Pools {
    Mutex mutex;
    std::map<int, std::weak_ptr<DevicePool>> by_device ABSL_GUARDED_BY(mutex);
  };
  static auto* const pools = new Pools;  // there are as many as devices
  const MutexLock lock(&pools->mutex);
  std::weak_ptr<DevicePool>& known = pools->by_device[device];
  std::shared_ptr<DevicePool> pool = known.lock();
  if (pool == nullptr) known = pool = Create(device);
  return pool;
}

absl::StatusOr<std::shared_ptr<std::byte>> DevicePool::AllocateIfRoom(
    uint64_t bytes) {
  auto block = Allocate(bytes);
  if (absl::IsResourceExhausted(block.status())) return nullptr;
  return block;
}

absl::StatusOr<std::byte*> DevicePool::Make(uint64_t bytes) const {
  absl::StatusOr<DeviceBlock> block =
      AllocateDevice(device_, bytes, "the block of a batch's arrays");
  if (!block.ok()) return AsDeviceFailure(block.status(), device_);
  return block->release();
}

void DevicePool::Free(std::byte* block) const { DeviceDeleter{device_}(block); }

}  // namespace millrace::cuda
