// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/ptxemu/launch.h"

namespace millrace::ptxemu {
namespace {

void PrintStatistics() {
  size_t used_bytes = 0;
  for (size_t d = 0; d < GetRuntime().devices.size(); ++d) {
    used_bytes += Memory::Get().used_bytes(static_cast<int>(d));
  }
  used_bytes -= GetRuntime().variable_bytes;
  const size_t streams =
      GetRuntime().live_streams.size() - GetRuntime().devices.size();
  const std::string waits = absl::StrJoin(
      GetRuntime().waits, ", ", [](std::string* out, const auto& calls) {
        absl::StrAppend(out, calls.second, " ", calls.first);
      });
  std::fprintf(stderr,
               "ptxemu: %lu launches, %lu threads, %lu instructions; calls in "
               "which the host waited: %s; not released: %zu bytes, %zu pinned "
               "ranges, %zu streams\n",
               launch_statistics.launches, launch_statistics.threads,
               launch_statistics.instructions, waits.c_str(), used_bytes,
               Memory::Get().pinned_count(), streams);
}

// Counts a call of `function` under `name`; returns the error that it is to
// fail with, if any.
cudaError_t PlannedError(const std::string& name, const char* function) {
  const auto& failures = GetSettings().failures;
  const auto planned = failures.find(name);
  if (planned == failures.end()) return cudaSuccess;
  const int call = ++GetRuntime().calls[name];
  for (const PlannedFailure& failure : planned->second) {
    if (failure.call != call) continue;
    std::fprintf(stderr, "ptxemu: %s fails as asked\n", function);
    const auto error = static_cast<cudaError_t>(failure.error);
    if (failure.lasts) CurrentDevice().fault = error;
    return error;
  }
  return cudaSuccess;
}

template <typename T>
T* FindLive(const std::set<const void*>& live, T* object) {
  return live.count(object) > 0 ? object : nullptr;
}

}  // namespace

Runtime::Runtime() : random(GetSettings().seed) {
  for (const int number : GetSettings().visible_devices) {
    const int device = static_cast<int>(devices.size());
    auto* const stream = new Stream{.device = device};
    auto* const pool =
        new MemoryPool{.device = device, .accessible_from = 1u << device};
    devices.push_back({.number = number,
                       .default_stream = stream,
                       .default_pool = pool,
                       .pool = pool});
    streams.push_back(stream);
    live_streams.insert(stream);
    live_pools.insert(pool);
  }
  if (GetSettings().statistics) std::atexit(PrintStatistics);
}

Runtime& GetRuntime() {
  static auto* runtime = new Runtime;
  return *runtime;
}

Mutex& RuntimeMutex() {
  static auto* mutex = new Mutex;
  return *mutex;
}

HostThread& CurrentThread() {
  static thread_local HostThread thread;
  return thread;
}

Device& CurrentDevice() { return GetRuntime().devices[CurrentThread().device]; }

bool IsDevice(int number) {
  return number >= 0 && number < static_cast<int>(GetRuntime().devices.size());
}

cudaError_t FaultOf(int device) { return GetRuntime().devices[device].fault; }

Stream* FindStream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy ||
      handle == cudaStreamPerThread) {
    return CurrentDevice().default_stream;
  }
  return FindLive(GetRuntime().live_streams, reinterpret_cast<Stream*>(handle));
}

Event* FindEvent(cudaEvent_t handle) {
  return FindLive(GetRuntime().live_events, reinterpret_cast<Event*>(handle));
}

MemoryPool* FindPool(cudaMemPool_t handle) {
  return FindLive(GetRuntime().live_pools,
                  reinterpret_cast<MemoryPool*>(handle));
}

cudaError_t CheckCall(const char* function) {
  if (!GetSettings().has_driver) return cudaErrorInsufficientDriver;
  if (GetRuntime().devices.empty()) return cudaErrorNoDevice;
  if (CurrentThread().is_in_host_function) return cudaErrorNotPermitted;
  for (const std::string name : {function, "*"}) {
    const cudaError_t planned = PlannedError(name, function);
    if (planned != cudaSuccess) return planned;
  }
  return CurrentDevice().fault;
}

cudaError_t Report(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) {
    CurrentThread().last_error = error;
  }
  return error;
}

}  // namespace millrace::ptxemu
