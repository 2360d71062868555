// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/hooks.h"

#include <utility>

#include "tests/ptxemu/queue.h"
#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu::hooks {

cudaError_t Enqueue(int device, cudaStream_t stream,
                    std::function<absl::StatusOr<bool>()> step) {
  const MutexLock lock(&RuntimeMutex());
  Stream* const found = stream == nullptr
                            ? GetRuntime().devices[device].default_stream
                            : FindStream(stream);
  if (found == nullptr || found->device != device) {
    return cudaErrorInvalidResourceHandle;
  }
  EnqueueLasting(found, std::move(step));
  return cudaSuccess;
}

absl::StatusOr<uint8_t*> Resolve(int device, const void* pointer,
                                 size_t bytes) {
  Memory::Get().SetActingDevice(device);
  return Memory::Get().Resolve(reinterpret_cast<uint64_t>(pointer), bytes);
}

void RunQueuedWork() {
  const MutexLock lock(&RuntimeMutex());
  RunOnePiece();
}

int NumberOf(int device) {
  const MutexLock lock(&RuntimeMutex());
  return GetRuntime().devices[device].number;
}

}  // namespace millrace::ptxemu::hooks
