// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions that register and launch kernels.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include "tests/ptxemu/copy.h"
#include "tests/ptxemu/launch.h"
#include "tests/ptxemu/program.h"
#include "tests/ptxemu/queue.h"
#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {
namespace {

constexpr uint64_t kMaxBlockThreads = 1024;
constexpr uint32_t kMaxBlockDepth = 64;
constexpr uint32_t kMaxGridHeight = 65535;
constexpr size_t kMaxSharedBytes = 163 << 10;

bool IsShapeAllowed(const Function& kernel, dim3 grid, dim3 block) {
  const uint64_t threads = Extent{block.x, block.y, block.z}.Count();
  const uint64_t most =
      std::min<uint64_t>(kMaxBlockThreads, kernel.max_threads);
  return threads > 0 && threads <= most && block.z <= kMaxBlockDepth &&
         grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= INT32_MAX &&
         grid.y <= kMaxGridHeight && grid.z <= kMaxGridHeight;
}

void PrintLaunch(const Launch& launch, int device) {
  std::fprintf(stderr,
               "ptxemu: launch %s <<<(%u,%u,%u), (%u,%u,%u), %zu>>> on device "
               "%d\n",
               launch.kernel->name.c_str(), launch.grid.x, launch.grid.y,
               launch.grid.z, launch.block.x, launch.block.y, launch.block.z,
               launch.dynamic_shared_bytes, device);
}

cudaError_t EnqueueLaunch(const void* function, dim3 grid, dim3 block,
                          void** arguments, size_t shared_bytes,
                          cudaStream_t handle, bool is_cooperative) {
  Stream* const stream = FindStream(handle);
  if (stream == nullptr || stream->device != CurrentThread().device) {
    return cudaErrorInvalidResourceHandle;
  }
  const Function* const kernel = FindKernel(function, stream->device);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  if (!IsShapeAllowed(*kernel, grid, block) ||
      kernel->shared_bytes + shared_bytes > kMaxSharedBytes) {
    return cudaErrorInvalidValue;
  }
  const auto launch = std::make_shared<Launch>(Launch{
      .kernel = kernel,
      .grid = {grid.x, grid.y, grid.z},
      .block = {block.x, block.y, block.z},
      .dynamic_shared_bytes = shared_bytes,
      .parameters = PackArguments(*kernel, arguments),
      .resident_blocks = is_cooperative ? std::numeric_limits<int>::max()
                                        : GetSettings().resident_blocks});
  if (GetSettings().verbose) PrintLaunch(*launch, stream->device);
  Enqueue(stream,
          [launch] { return RunLaunch(*launch, &GetRuntime().random); });
  return cudaSuccess;
}

// Copies between the host and a variable of the current device. `copy` gets the
// stream and the variable's address.
template <typename F>
cudaError_t CopyVariable(const char* function, const void* symbol,
                         size_t offset, cudaStream_t handle, F copy) {
  return CallRuntime(function, [&]() -> cudaError_t {
    if (!IsVariable(symbol)) return cudaErrorInvalidSymbol;
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const uint64_t address = FindVariable(symbol, CurrentThread().device);
    if (address == 0) return cudaErrorNoKernelImageForDevice;
    return copy(stream, reinterpret_cast<void*>(address + offset));
  });
}

cudaError_t FinishCopy(Stream* stream, cudaError_t error) {
  return error != cudaSuccess ? error : FinishStream(stream);
}

}  // namespace
}  // namespace millrace::ptxemu

// The names are those that the CUDA headers and nvcc's output use.
using namespace millrace::ptxemu;  // NOLINT(google-build-using-namespace)
using millrace::MutexLock;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new Binary{.wrapper = wrapper});
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** binary, const char* host, char*,
                            const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  const MutexLock lock(&RuntimeMutex());
  RegisterKernel(host, reinterpret_cast<Binary*>(binary), name);
}

void __cudaRegisterVar(void** binary, char* host, char*, const char* name, int,
                       size_t, int, int) {
  const MutexLock lock(&RuntimeMutex());
  RegisterVariable(host, reinterpret_cast<Binary*>(binary), name);
}

void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int,
                              size_t, int, int) {
  std::fprintf(stderr, "ptxemu: %s: managed variables are not supported\n",
               name);
  std::abort();
}

cudaError_t __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                        void* stream) {
  CurrentThread().launches.push_back(
      {grid, block, shared, static_cast<cudaStream_t>(stream)});
  return cudaSuccess;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared,
                                       void* stream) {
  const LaunchConfiguration launch = CurrentThread().launches.back();
  CurrentThread().launches.pop_back();
  *grid = launch.grid;
  *block = launch.block;
  *shared = launch.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = launch.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void** arguments, size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                    void** arguments, size_t shared,
                                    cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

}  // extern "C"

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                             void** arguments, size_t shared,
                             cudaStream_t stream) {
  return CallRuntime(__func__, [&] {
    return EnqueueLaunch(function, grid, block, arguments, shared, stream,
                         false);
  });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config,
                                const void* function, void** arguments) {
  return CallRuntime(__func__, [&] {
    return EnqueueLaunch(function, config->gridDim, config->blockDim, arguments,
                         config->dynamicSmemBytes, config->stream, false);
  });
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid,
                                        dim3 block, void** arguments,
                                        size_t shared, cudaStream_t stream) {
  return CallRuntime(__func__, [&] {
    return EnqueueLaunch(function, grid, block, arguments, shared, stream,
                         true);
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function,
                               void* data) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    EnqueueHostFunction(stream, [=] { function(data); });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle,
                                  cudaStreamCallback_t function, void* data,
                                  unsigned) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    EnqueueHostFunction(stream, [=] { function(handle, cudaSuccess, data); });
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                  const void* function) {
  return CallRuntime(__func__, [&]() -> cudaError_t {
    const Function* const kernel = FindKernel(function, CurrentThread().device);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    std::memset(attributes, 0, sizeof *attributes);
    attributes->ptxVersion = 80;
    attributes->binaryVersion = 80;
    attributes->numRegs = 32;
    attributes->maxDynamicSharedSizeBytes = 48 << 10;
    attributes->sharedSizeBytes = kernel->shared_bytes;
    attributes->localSizeBytes = kernel->local_bytes;
    attributes->maxThreadsPerBlock = std::min(1024, kernel->max_threads);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return CallRuntime(__func__, [] { return cudaSuccess; });
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  return CallRuntime(__func__, [] { return cudaSuccess; });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  *function = static_cast<cudaFunction_t>(const_cast<void*>(symbol));
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void*, int block_threads, size_t, unsigned) {
  return CallRuntime(__func__, [&] {
    *blocks = std::max(1, 2048 / std::max(block_threads, 1));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void* function,
                                                          int block_threads,
                                                          size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, block_threads, shared, 0);
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return CopyVariable(__func__, symbol, 0, nullptr,
                      [&](Stream*, void* variable) {
                        *address = variable;
                        return cudaSuccess;
                      });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from,
                                    size_t bytes, size_t offset, cudaMemcpyKind,
                                    cudaStream_t handle) {
  return CopyVariable(__func__, symbol, offset, handle,
                      [&](Stream* stream, void* variable) {
                        return EnqueueCopy(stream, variable, from, bytes);
                      });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from,
                               size_t bytes, size_t offset, cudaMemcpyKind) {
  return CopyVariable(
      __func__, symbol, offset, nullptr, [&](Stream* stream, void* variable) {
        return FinishCopy(stream, EnqueueCopy(stream, variable, from, bytes));
      });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol,
                                      size_t bytes, size_t offset,
                                      cudaMemcpyKind, cudaStream_t handle) {
  return CopyVariable(__func__, symbol, offset, handle,
                      [&](Stream* stream, void* variable) {
                        return EnqueueCopy(stream, to, variable, bytes);
                      });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes,
                                 size_t offset, cudaMemcpyKind) {
  return CopyVariable(
      __func__, symbol, offset, nullptr, [&](Stream* stream, void* variable) {
        return FinishCopy(stream, EnqueueCopy(stream, to, variable, bytes));
      });
}
