// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions that allocate and copy memory.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/base/round_up.h"
#include "common/base/status_macros.h"
#include "tests/ptxemu/copy.h"
#include "tests/ptxemu/queue.h"
#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {
namespace {

constexpr size_t kHostAlignment = 4096;
constexpr int kFreshHostByte = 0xCD;

uint64_t ToAddress(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

cudaError_t AllocateInOrder(void** pointer, size_t bytes, MemoryPool* pool,
                            Stream* stream) {
  const uint64_t address = Memory::Get().AllocateFromPool(pool, bytes);
  *pointer = reinterpret_cast<void*>(address);
  if (address == 0) return cudaErrorMemoryAllocation;
  Enqueue(stream, [address] {
    Memory::Get().SetLive(address);
    return absl::OkStatus();
  });
  return cudaSuccess;
}

// Unlike a copy, it needs access to the memory from the stream's device.
absl::Status FillMemory(void* to, int value, size_t bytes) {
  MILLRACE_ASSIGN_OR_RETURN(uint8_t * target,
                            Memory::Get().Resolve(ToAddress(to), bytes));
  std::memset(target, value, bytes);
  return absl::OkStatus();
}

bool BelongsTo(const void* pointer, int device) {
  const auto* const allocation =
      Memory::Get().FindAllocation(ToAddress(pointer));
  return allocation == nullptr || allocation->device == device;
}

cudaError_t CheckPeerCopy(const void* to, int to_device, const void* from,
                          int from_device) {
  if (!IsDevice(to_device) || !IsDevice(from_device)) {
    return cudaErrorInvalidDevice;
  }
  return BelongsTo(to, to_device) && BelongsTo(from, from_device)
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

cudaError_t EnqueueRows(Stream* stream, void* to, size_t to_pitch,
                        const void* from, size_t from_pitch, size_t width,
                        size_t height) {
  for (size_t row = 0; row < height; ++row) {
    const cudaError_t error =
        EnqueueCopy(stream, static_cast<char*>(to) + row * to_pitch,
                    static_cast<const char*>(from) + row * from_pitch, width);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace millrace::ptxemu

using namespace millrace::ptxemu;  // NOLINT(google-build-using-namespace)

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    *pointer = reinterpret_cast<void*>(
        Memory::Get().Allocate(CurrentThread().device, bytes));
    return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaFree(void* pointer) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    WaitForDevice(CurrentThread().device);
    if (pointer == nullptr) return CurrentDevice().fault;
    const int owner = Memory::Get().DeviceOf(ToAddress(pointer));
    if (IsDevice(owner)) WaitForDevice(owner);
    if (!Memory::Get().Free(ToAddress(pointer))) return cudaErrorInvalidValue;
    return CurrentDevice().fault;
  });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t handle) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    MemoryPool* const pool = GetRuntime().devices[stream->device].pool;
    return AllocateInOrder(pointer, bytes, pool, stream);
  });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes,
                                    cudaMemPool_t pool, cudaStream_t handle) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (FindPool(pool) == nullptr) return cudaErrorInvalidValue;
    return AllocateInOrder(pointer, bytes, FindPool(pool), stream);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (pointer == nullptr) return cudaSuccess;
    Enqueue(stream, [pointer]() -> absl::Status {
      if (Memory::Get().Free(ToAddress(pointer))) return absl::OkStatus();
      return absl::InternalError("cudaFreeAsync of what is not allocated");
    });
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    const size_t room =
        millrace::RoundUp(std::max<size_t>(bytes, 1), kHostAlignment);
    *pointer = std::aligned_alloc(kHostAlignment, room);
    if (*pointer == nullptr) return cudaErrorMemoryAllocation;
    std::memset(*pointer, kFreshHostByte, bytes);
    Memory::Get().Pin(*pointer, bytes, CurrentThread().device);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

cudaError_t cudaFreeHost(void* pointer) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    WaitForAllDevices();
    if (pointer == nullptr) return cudaSuccess;
    if (!Memory::Get().Unpin(pointer)) return cudaErrorInvalidValue;
    std::free(pointer);
    return CurrentDevice().fault;
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (pointer == nullptr || bytes == 0) return cudaErrorInvalidValue;
    if (Memory::Get().IsPinned(pointer, 1)) {
      return cudaErrorHostMemoryAlreadyRegistered;
    }
    Memory::Get().Pin(pointer, bytes, CurrentThread().device);
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    WaitForAllDevices();
    return Memory::Get().Unpin(pointer) ? cudaSuccess
                                        : cudaErrorHostMemoryNotRegistered;
  });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer,
                                     unsigned) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!Memory::Get().IsPinned(pointer, 1)) return cudaErrorInvalidValue;
    *device_pointer = pointer;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                     const void* pointer) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    const Memory& memory = Memory::Get();
    const auto* const allocation = memory.FindAllocation(ToAddress(pointer));
    const auto* const pinned = memory.FindPinned(ToAddress(pointer));
    void* const plain = const_cast<void*>(pointer);
    std::memset(attributes, 0, sizeof *attributes);
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = cudaInvalidDeviceId;
    if (allocation != nullptr) {
      attributes->type = cudaMemoryTypeDevice;
      attributes->device = allocation->device;
      attributes->devicePointer = plain;
    } else if (pinned != nullptr) {
      attributes->type = cudaMemoryTypeHost;
      attributes->device = pinned->device;
      attributes->devicePointer = plain;
    }
    if (!memory.IsDeviceAddress(ToAddress(pointer))) {
      attributes->hostPointer = plain;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return CallRuntime(__func__, [&] {
    *total_bytes = GetSettings().memory_bytes;
    *free_bytes = Memory::Get().free_bytes(CurrentThread().device);
    return cudaSuccess;
  });
}

cudaError_t cudaMallocManaged(void**, size_t, unsigned) {
  return CallRuntime(__func__, [] { return cudaErrorNotSupported; });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t handle) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return EnqueueCopy(stream, to, from, bytes);
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                       cudaMemcpyKind) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = CurrentDevice().default_stream;
    const cudaError_t error = EnqueueCopy(stream, to, from, bytes);
    return error != cudaSuccess ? error : FinishStream(stream);
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                              size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind, cudaStream_t handle) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return EnqueueRows(stream, to, to_pitch, from, from_pitch, width, height);
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from,
                         size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = CurrentDevice().default_stream;
    const cudaError_t error =
        EnqueueRows(stream, to, to_pitch, from, from_pitch, width, height);
    return error != cudaSuccess ? error : FinishStream(stream);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from,
                                int from_device, size_t bytes,
                                cudaStream_t handle) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = CheckPeerCopy(to, to_device, from, from_device);
    return error != cudaSuccess ? error : EnqueueCopy(stream, to, from, bytes);
  });
}

// In order with all work of both devices and of the current one.
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from,
                           int from_device, size_t bytes) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    cudaError_t error = CheckPeerCopy(to, to_device, from, from_device);
    if (error != cudaSuccess) return error;
    WaitForDevice(to_device);
    WaitForDevice(from_device);
    WaitForDevice(CurrentThread().device);
    Stream* const stream = CurrentDevice().default_stream;
    error = EnqueueCopy(stream, to, from, bytes);
    return error != cudaSuccess ? error : FinishStream(stream);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes,
                            cudaStream_t handle) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    Enqueue(stream, [=] { return FillMemory(to, value, bytes); });
    return cudaSuccess;
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}
