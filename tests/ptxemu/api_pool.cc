// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions for pools of stream-ordered memory.
#include <cuda_runtime_api.h>

#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {
namespace {

// Calls `body` with the pool behind a handle.
template <typename F>
cudaError_t WithPool(const char* function, cudaMemPool_t handle, F body) {
  return CallRuntime(function, [&]() -> cudaError_t {
    MemoryPool* const pool = FindPool(handle);
    if (pool == nullptr) return cudaErrorInvalidValue;
    return body(pool);
  });
}

// Attributes have 64 bits, or are ints.
bool IsWide(cudaMemPoolAttr attribute) {
  return attribute >= cudaMemPoolAttrReleaseThreshold;
}

bool IsCurrentUse(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolAttrUsedMemCurrent ||
         attribute == cudaMemPoolAttrReservedMemCurrent;
}

bool IsMostUse(cudaMemPoolAttr attribute) {
  return attribute == cudaMemPoolAttrUsedMemHigh ||
         attribute == cudaMemPoolAttrReservedMemHigh;
}

uint64_t AttributeOf(const MemoryPool& pool, cudaMemPoolAttr attribute) {
  if (IsCurrentUse(attribute)) return pool.used_bytes;
  if (IsMostUse(attribute)) return pool.most_used_bytes;
  const auto set = pool.attributes.find(attribute);
  if (set != pool.attributes.end()) return set->second;
  return IsWide(attribute) ? 0 : 1;  // the reuse policies are on
}

// Changes `accessible` as the description says; false if that is impossible.
bool ChangeAccess(const MemoryPool& pool, const cudaMemAccessDesc& change,
                  uint32_t* accessible) {
  const int device = change.location.id;
  const bool allow = change.flags == cudaMemAccessFlagsProtReadWrite;
  if (change.location.type != cudaMemLocationTypeDevice || !IsDevice(device)) {
    return false;
  }
  if (device == pool.device && !allow) return false;
  if (device != pool.device && allow && !GetSettings().has_peer_access) {
    return false;
  }
  const uint32_t bit = 1u << device;
  *accessible = allow ? *accessible | bit : *accessible & ~bit;
  return true;
}

}  // namespace
}  // namespace millrace::ptxemu

using namespace millrace::ptxemu;  // NOLINT(google-build-using-namespace)

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* handle, int device) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!IsDevice(device)) return cudaErrorInvalidDevice;
    *handle = reinterpret_cast<cudaMemPool_t>(
        GetRuntime().devices[device].default_pool);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* handle, int device) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!IsDevice(device)) return cudaErrorInvalidDevice;
    *handle =
        reinterpret_cast<cudaMemPool_t>(GetRuntime().devices[device].pool);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t handle) {
  return WithPool(__func__, handle, [&](MemoryPool* pool) -> cudaError_t {
    if (!IsDevice(device)) return cudaErrorInvalidDevice;
    if (pool->device != device) return cudaErrorInvalidValue;
    GetRuntime().devices[device].pool = pool;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* handle,
                              const cudaMemPoolProps* properties) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    const int device = properties->location.id;
    if (properties->location.type != cudaMemLocationTypeDevice ||
        !IsDevice(device)) {
      return cudaErrorInvalidValue;
    }
    auto* const pool =
        new MemoryPool{.device = device, .accessible_from = 1u << device};
    GetRuntime().live_pools.insert(pool);
    *handle = reinterpret_cast<cudaMemPool_t>(pool);
    return cudaSuccess;
  });
}

// What was allocated from the pool stays.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  return WithPool(__func__, handle, [&](MemoryPool* pool) -> cudaError_t {
    Device& device = GetRuntime().devices[pool->device];
    if (pool == device.default_pool) return cudaErrorInvalidValue;
    if (device.pool == pool) device.pool = device.default_pool;
    GetRuntime().live_pools.erase(pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle,
                                    cudaMemPoolAttr attribute, void* value) {
  return WithPool(__func__, handle, [&](MemoryPool* pool) -> cudaError_t {
    const uint64_t number =
        IsWide(attribute) ? *static_cast<uint64_t*>(value)
                          : static_cast<uint64_t>(*static_cast<int*>(value));
    if (IsCurrentUse(attribute) || (IsMostUse(attribute) && number != 0)) {
      return cudaErrorInvalidValue;
    }
    if (IsMostUse(attribute)) {
      pool->most_used_bytes = pool->used_bytes;
    } else {
      pool->attributes[attribute] = number;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle,
                                    cudaMemPoolAttr attribute, void* value) {
  return WithPool(__func__, handle, [&](MemoryPool* pool) -> cudaError_t {
    const uint64_t number = AttributeOf(*pool, attribute);
    if (IsWide(attribute)) {
      *static_cast<uint64_t*>(value) = number;
    } else {
      *static_cast<int*>(value) = static_cast<int>(number);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t) {
  return WithPool(__func__, handle, [](MemoryPool*) { return cudaSuccess; });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle,
                                 const cudaMemAccessDesc* changes,
                                 size_t count) {
  return WithPool(__func__, handle, [&](MemoryPool* pool) -> cudaError_t {
    uint32_t accessible = pool->accessible_from;
    for (size_t i = 0; i < count; ++i) {
      if (!ChangeAccess(*pool, changes[i], &accessible)) {
        return cudaErrorInvalidValue;
      }
    }
    pool->accessible_from = accessible;
    Memory::Get().ForgetChecked();
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags,
                                 cudaMemPool_t handle,
                                 cudaMemLocation* location) {
  return WithPool(__func__, handle, [&](MemoryPool* pool) -> cudaError_t {
    if (!IsDevice(location->id)) return cudaErrorInvalidValue;
    *flags = (pool->accessible_from >> location->id & 1) != 0
                 ? cudaMemAccessFlagsProtReadWrite
                 : cudaMemAccessFlagsProtNone;
    return cudaSuccess;
  });
}
