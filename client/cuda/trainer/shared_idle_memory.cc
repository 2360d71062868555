// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/trainer/shared_idle_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <exception>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {
namespace {

// The one that exists, or null.
Mutex sharing_mutex;
const SharedIdleMemory* sharing = nullptr;

// Below this share of its memory, a device is short of it.
constexpr uint64_t kShortShare = 10;

// LibTorch calls it under a lock whenever it must ask the device for memory,
// which is rare once batches have had their largest size.
class GiveBackIfShort final : public c10::FreeMemoryCallback {
 public:
  bool Execute() override {
    const MutexLock lock(&sharing_mutex);
    if (sharing == nullptr) return false;
    const absl::StatusOr<DeviceMemoryUse> use = MemoryUseOf(sharing->device());
    if (!use.ok() || use->free_bytes >= use->total_bytes / kShortShare) {
      return false;
    }
    sharing->GiveBack();
    return true;
  }
};

void EmptyCacheOfTorch() {
  try {
    c10::cuda::CUDACachingAllocator::emptyCache();
  } catch (const std::exception&) {
    // The device has failed, which its next use says.
  }
}

}  // namespace

SharedIdleMemory::SharedIdleMemory(int device)
    : pool_(DevicePool::Of(device)),
      reclaimer_(DeviceGate::Of(device), EmptyCacheOfTorch) {
  const MutexLock lock(&sharing_mutex);
  MILLRACE_CHECK(sharing == nullptr);
  sharing = this;
}

SharedIdleMemory::~SharedIdleMemory() {
  const MutexLock lock(&sharing_mutex);
  sharing = nullptr;
}

void SharedIdleMemory::GiveBack() const {
  pool_->DropIdle();
  TrimMemory(pool_->device());
}

}  // namespace millrace::cuda

namespace c10 {
REGISTER_FREE_MEMORY_CALLBACK(millrace, millrace::cuda::GiveBackIfShort)
}  // namespace c10
