// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions for devices, errors and peers.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "tests/ptxemu/error_names.h"
#include "tests/ptxemu/queue.h"
#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {
namespace {

constexpr int kVersion = 13000;
constexpr int kMaxPeers = 8;

bool CanReach(int from, int to) {
  return from != to && GetSettings().has_peer_access;
}

// Returns true if a call succeeded, or failed only because of an earlier fault
// of the current device.
bool IsOnlyFault(cudaError_t error) {
  return error == cudaSuccess ||
         (!GetRuntime().devices.empty() && error == CurrentDevice().fault);
}

// The value of an attribute of a device of compute capability 8.0 that is small
// so that tests reach its limits; 0 if it is unknown.
int DeviceAttribute(cudaDeviceAttr attribute, const Device& device) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 163 << 10;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return 164 << 10;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMultiProcessorCount:
      return 4;
    case cudaDevAttrComputeCapabilityMajor:
      return 8;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return 32;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
      return 1;
    case cudaDevAttrL2CacheSize:
      return 40 << 20;
    case cudaDevAttrClockRate:
      return 1'000'000;
    case cudaDevAttrPciBusId:
      return device.number + 1;
    default:
      return 0;
  }
}

cudaError_t EnablePeer(int from, int to) {
  Memory& memory = Memory::Get();
  if (!CanReach(from, to)) return cudaErrorPeerAccessUnsupported;
  if (memory.HasPeerAccess(from, to)) return cudaErrorPeerAccessAlreadyEnabled;
  int enabled = 0;
  for (int d = 0; IsDevice(d); ++d) enabled += memory.HasPeerAccess(from, d);
  if (enabled >= kMaxPeers) return cudaErrorTooManyPeers;
  memory.SetPeerAccess(from, to, true);
  return cudaSuccess;
}

}  // namespace
}  // namespace millrace::ptxemu

using namespace millrace::ptxemu;  // NOLINT(google-build-using-namespace)
using millrace::MutexLock;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return CallRuntime(__func__, [&] {
    *count = static_cast<int>(GetRuntime().devices.size());
    return cudaSuccess;
  });
}

// Threads can leave a device that has had a fault.
cudaError_t cudaSetDevice(int device) {
  const MutexLock lock(&RuntimeMutex());
  const cudaError_t refused = CheckCall(__func__);
  if (!IsOnlyFault(refused)) return Report(refused);
  if (!IsDevice(device)) return Report(cudaErrorInvalidDevice);
  CurrentThread().device = device;
  return Report(FaultOf(device));
}

cudaError_t cudaGetDevice(int* device) {
  const MutexLock lock(&RuntimeMutex());
  *device = CurrentThread().device;
  const cudaError_t refused = CheckCall(__func__);
  return IsOnlyFault(refused) ? cudaSuccess : Report(refused);
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    return IsDevice(device) ? cudaSuccess : cudaErrorInvalidDevice;
  });
}

cudaError_t cudaDeviceReset() { return cudaDeviceSynchronize(); }

cudaError_t cudaDeviceSynchronize() {
  return CallRuntime(__func__, [] {
    WaitForDevice(CurrentThread().device);
    return CurrentDevice().fault;
  });
}

cudaError_t cudaGetLastError() {
  const MutexLock lock(&RuntimeMutex());
  if (!GetSettings().has_driver) return cudaErrorInsufficientDriver;
  const cudaError_t error = CurrentThread().last_error;
  CurrentThread().last_error =
      GetRuntime().devices.empty() ? cudaSuccess : CurrentDevice().fault;
  return error;
}

cudaError_t cudaPeekAtLastError() { return CurrentThread().last_error; }

const char* cudaGetErrorName(cudaError_t error) { return ErrorName(error); }

// After a fault, the text says what the fault was.
const char* cudaGetErrorString(cudaError_t error) {
  const MutexLock lock(&RuntimeMutex());
  for (const Device& device : GetRuntime().devices) {
    if (error != cudaSuccess && device.fault == error) {
      return device.fault_message.c_str();
    }
  }
  return ErrorName(error);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = GetSettings().has_driver ? kVersion : 0;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                   int device) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!IsDevice(device)) return cudaErrorInvalidDevice;
    *value = DeviceAttribute(attribute, GetRuntime().devices[device]);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!IsDevice(device)) return cudaErrorInvalidDevice;
    const int number = GetRuntime().devices[device].number;
    std::memset(properties, 0, sizeof *properties);
    std::snprintf(properties->name, sizeof properties->name, "ptxemu");
    std::snprintf(properties->uuid.bytes, sizeof properties->uuid.bytes,
                  "ptxemu-%d", number);
    properties->pciBusID = number + 1;
    properties->totalGlobalMem = GetSettings().memory_bytes;
    properties->major = 8;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerBlockOptin = 163 << 10;
    properties->canMapHostMemory = 1;
    properties->unifiedAddressing = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return CallRuntime(__func__, [&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!IsDevice(device)) return cudaErrorInvalidDevice;
    std::snprintf(id, size, "0000:%02x:00.0",
                  GetRuntime().devices[device].number + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    unsigned domain = 0;
    unsigned bus = 0;
    if (std::sscanf(id, "%x:%x:", &domain, &bus) != 2) {
      return cudaErrorInvalidValue;
    }
    for (int d = 0; IsDevice(d); ++d) {
      if (GetRuntime().devices[d].number + 1 != static_cast<int>(bus)) continue;
      *device = d;
      return cudaSuccess;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
  return CallRuntime(__func__, [&] {
    *value = 1 << 20;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {
  return CallRuntime(__func__, [] { return cudaSuccess; });
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int from, int to) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!IsDevice(from) || !IsDevice(to)) return cudaErrorInvalidDevice;
    *can_access = CanReach(from, to);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute,
                                      int from, int to) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (!IsDevice(from) || !IsDevice(to) || from == to) {
      return cudaErrorInvalidDevice;
    }
    const bool is_access = attribute == cudaDevP2PAttrAccessSupported ||
                           attribute == cudaDevP2PAttrNativeAtomicSupported;
    *value = is_access && CanReach(from, to);
    return cudaSuccess;
  });
}

// Opens the peer's memory to the current device, but not the reverse.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    if (flags != 0) return cudaErrorInvalidValue;
    if (!IsDevice(peer)) return cudaErrorInvalidDevice;
    return EnablePeer(CurrentThread().device, peer);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    const int device = CurrentThread().device;
    if (!IsDevice(peer)) return cudaErrorInvalidDevice;
    if (!Memory::Get().HasPeerAccess(device, peer)) {
      return cudaErrorPeerAccessNotEnabled;
    }
    WaitForDevice(device);
    Memory::Get().SetPeerAccess(device, peer, false);
    return cudaSuccess;
  });
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }

cudaError_t cudaProfilerStop() { return cudaSuccess; }
