// SPDX-License-Identifier: Apache-2.0
// The state of the CUDA runtime: devices, streams and events, and what each
// host thread has of its own. One lock guards all of it, and the memory of the
// devices; functions without a word about it must be called with the lock held.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "tests/ptxemu/memory.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ptxemu {

struct Stream;

// The `number`th piece of work of a stream, counted from 1.
struct Ticket {
  Stream* stream;
  uint64_t number;
};

struct Work {
  // Returns whether the work is done; if it is not, it must be called again.
  std::function<absl::StatusOr<bool>()> step;
  std::vector<Ticket> after;  // what must be done before
};

// Streams and events are never deleted, so that handles of those that the
// program has destroyed are recognised.
struct Stream {
  int device;
  bool waits_for_default = true;  // and the default stream for it
  int priority = 0;
  bool is_running = false;  // its first work runs, perhaps without the lock
  std::deque<Work> queue = {};
  uint64_t enqueued = 0;
  uint64_t done = 0;
};

struct Event {
  int device;
  unsigned flags;
  bool is_recorded = false;
  Ticket ticket = {};  // the work that it was recorded behind
};

struct Device {
  int number;  // in the machine
  Stream* default_stream;
  MemoryPool* default_pool;
  MemoryPool* pool;
  cudaError_t fault = cudaSuccess;  // stays, once there is one
  std::string fault_message = {};
};

struct Runtime {
  Runtime();

  std::vector<Device> devices;
  std::vector<Stream*> streams;  // all that there have been
  std::set<const void*> live_streams;
  std::set<const void*> live_events;
  std::set<const void*> live_pools;
  std::mt19937_64 random;
  std::map<std::string, int> calls;  // of functions that are to fail
  size_t variable_bytes = 0;         // of all devices' variables
  // Calls in which the host has waited for a device, by function.
  std::map<std::string, uint64_t> waits;
  bool has_background_thread = false;
};

// Created at the first call, so that the environment is read then.
Runtime& GetRuntime();
Mutex& RuntimeMutex();

// Gives the lock up for its own lifetime.
class ReleasedLock {
 public:
  ReleasedLock() { RuntimeMutex().Unlock(); }
  ~ReleasedLock() { RuntimeMutex().Lock(); }
  ReleasedLock(const ReleasedLock&) = delete;
  ReleasedLock& operator=(const ReleasedLock&) = delete;
};

struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// What a host thread has of its own; needs no lock.
struct HostThread {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  bool is_in_host_function = false;
  bool has_waited = false;                    // in its current call
  std::vector<LaunchConfiguration> launches;  // between <<<>>> and the call
};
HostThread& CurrentThread();

Device& CurrentDevice();
bool IsDevice(int number);
cudaError_t FaultOf(int device);

// Null if the handle is not that of a live stream. The null handle means the
// default stream of the current device.
Stream* FindStream(cudaStream_t handle);
Event* FindEvent(cudaEvent_t handle);
MemoryPool* FindPool(cudaMemPool_t handle);

// Returns why a function of this name fails before it does anything: there is
// no driver or device, it is called by a host function, PTXEMU_FAIL asks for
// it, or the current device has had a fault.
cudaError_t CheckCall(const char* function);
// Keeps an error for cudaGetLastError(), and returns it.
cudaError_t Report(cudaError_t error);

// Does what all functions of the API do around `body`, which returns a
// cudaError_t: takes the lock, checks the call, and keeps the error. Must be
// called without the lock.
template <typename F>
cudaError_t CallRuntime(const char* function, F body) {
  const MutexLock lock(&RuntimeMutex());
  const cudaError_t refused = CheckCall(function);
  const cudaError_t error = Report(refused != cudaSuccess ? refused : body());
  if (std::exchange(CurrentThread().has_waited, false)) {
    ++GetRuntime().waits[function];
  }
  return error;
}

}  // namespace millrace::ptxemu
