// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime's functions for streams and events.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tests/ptxemu/copy.h"
#include "tests/ptxemu/queue.h"
#include "tests/ptxemu/runtime.h"

namespace millrace::ptxemu {
namespace {

constexpr int kHighestPriority = -5;

absl::Status DoNothing() { return absl::OkStatus(); }

// Calls `body` with the stream behind a handle, of whichever device.
template <typename F>
cudaError_t WithStream(const char* function, cudaStream_t handle, F body) {
  return CallRuntime(function, [&]() -> cudaError_t {
    Stream* const stream = FindStream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return body(stream);
  });
}

template <typename F>
cudaError_t WithEvent(const char* function, cudaEvent_t handle, F body) {
  return CallRuntime(function, [&]() -> cudaError_t {
    Event* const event = FindEvent(handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    return body(event);
  });
}

cudaError_t RecordEvent(Event* event, Stream* stream) {
  if (event->device != stream->device) return cudaErrorInvalidResourceHandle;
  Enqueue(stream, DoNothing);
  event->ticket = LastTicket(stream);
  event->is_recorded = true;
  return cudaSuccess;
}

bool IsTimed(const Event& event) {
  return event.is_recorded && (event.flags & cudaEventDisableTiming) == 0;
}

}  // namespace
}  // namespace millrace::ptxemu

using namespace millrace::ptxemu;  // NOLINT(google-build-using-namespace)

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags,
                                         int priority) {
  return CallRuntime(__func__, [&] {
    auto* const stream =
        new Stream{.device = CurrentThread().device,
                   .waits_for_default = (flags & cudaStreamNonBlocking) == 0,
                   .priority = std::clamp(priority, kHighestPriority, 0)};
    GetRuntime().streams.push_back(stream);
    GetRuntime().live_streams.insert(stream);
    *handle = reinterpret_cast<cudaStream_t>(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithPriority(handle, 0, 0);
}

// Work that is queued is still done.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return WithStream(__func__, handle, [](Stream* stream) -> cudaError_t {
    if (stream == GetRuntime().devices[stream->device].default_stream) {
      return cudaErrorInvalidResourceHandle;
    }
    GetRuntime().live_streams.erase(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return WithStream(__func__, handle, [](Stream* stream) {
    WaitForStream(stream);
    if (stream == GetRuntime().devices[stream->device].default_stream) {
      const std::vector<Stream*> streams = GetRuntime().streams;
      for (Stream* other : streams) {
        if (other->waits_for_default && other->device == stream->device) {
          WaitForStream(other);
        }
      }
    }
    return FaultOf(stream->device);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return WithStream(__func__, handle, [](Stream* stream) {
    return HasReached(LastTicket(stream)) ? FaultOf(stream->device)
                                          : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return WithStream(__func__, handle, [&](Stream* stream) {
    *priority = stream->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return WithStream(__func__, handle, [&](Stream* stream) {
    *flags = stream->waits_for_default ? 0 : cudaStreamNonBlocking;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return WithStream(__func__, handle, [&](Stream* stream) {
    *device = stream->device;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle,
                                  cudaStreamCaptureStatus* status) {
  return WithStream(__func__, handle, [&](Stream*) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
  return cudaSuccess;
}

// The stream and the event may be those of different devices.
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle,
                                unsigned) {
  return WithStream(__func__, handle, [&](Stream* stream) -> cudaError_t {
    const Event* const event = FindEvent(event_handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->is_recorded) Enqueue(stream, DoNothing, {event->ticket});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  return CallRuntime(__func__, [&] {
    auto* const event =
        new Event{.device = CurrentThread().device, .flags = flags};
    GetRuntime().live_events.insert(event);
    *handle = reinterpret_cast<cudaEvent_t>(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  return cudaEventCreateWithFlags(handle, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return WithEvent(__func__, handle, [](Event* event) {
    GetRuntime().live_events.erase(event);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream,
                                     unsigned) {
  return cudaEventRecord(handle, stream);
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return WithEvent(__func__, handle, [&](Event* event) -> cudaError_t {
    Stream* const stream = FindStream(stream_handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return RecordEvent(event, stream);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return WithEvent(__func__, handle, [](Event* event) {
    if (event->is_recorded) WaitForTicket(event->ticket);
    return FaultOf(event->device);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return WithEvent(__func__, handle, [](Event* event) {
    return !event->is_recorded || HasReached(event->ticket)
               ? FaultOf(event->device)
               : cudaErrorNotReady;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                 cudaEvent_t end) {
  return WithEvent(__func__, start, [&](Event* first) -> cudaError_t {
    const Event* const second = FindEvent(end);
    if (second == nullptr || first->device != second->device ||
        !IsTimed(*first) || !IsTimed(*second)) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!HasReached(first->ticket) || !HasReached(second->ticket)) {
      return cudaErrorNotReady;
    }
    *milliseconds = 1;
    return cudaSuccess;
  });
}
