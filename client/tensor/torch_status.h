// SPDX-License-Identifier: Apache-2.0
// Turns LibTorch's exceptions into statuses.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace {

constexpr Reason kOutOfMemory = {"out_of_memory"};

// `wanted`: how much more was needed, such as "24 bytes"; empty if unknown.
inline absl::Status OutOfMemory(std::string_view what,
                                std::string_view wanted = "") {
  return WithReason(
      absl::ResourceExhaustedError(StrCat(
          what, " ran out of memory",
          wanted.empty() ? "" : StrCat(" when it needed ", wanted, " more"))),
      kOutOfMemory);
}

// Returns true if OutOfMemory() made `status`.
inline bool IsOutOfMemory(const absl::Status& status) {
  return ReasonOf(status) == kOutOfMemory.word;
}

constexpr Reason kOutOfDeviceMemory = {"out_of_device_memory"};

// `message`: that of a device's allocator, such as "CUDA out of memory. Tried
// to allocate 20.00 MiB. GPU 0 has ...".
inline absl::Status OutOfDeviceMemory(std::string_view what,
                                      std::string_view message) {
  constexpr std::string_view kTried = "Tried to allocate ";
  std::string wanted;
  if (const size_t at = message.find(kTried); at != std::string_view::npos) {
    const std::string_view rest = message.substr(at + kTried.size());
    // The number may have a point of its own.
    wanted =
        StrCat(" when it needed ", rest.substr(0, rest.find(". ")), " more");
  }
  return WithReason(absl::ResourceExhaustedError(StrCat(
                        what, " ran out of the device's memory", wanted)),
                    kOutOfDeviceMemory);
}

// Returns true if OutOfDeviceMemory() made `status`.
inline bool IsOutOfDeviceMemory(const absl::Status& status) {
  return ReasonOf(status) == kOutOfDeviceMemory.word;
}

// Classifies an exception by its message, because LibTorch's CPU allocator has
// no exception type of its own.
inline absl::Status TorchError(std::string_view what,
                               std::string_view message) {
  constexpr std::string_view kTried =
      "DefaultCPUAllocator: can't allocate memory: you tried to allocate ";
  const size_t at = message.find(kTried);
  if (at != std::string_view::npos) {
    const std::string_view rest = message.substr(at + kTried.size());
    return OutOfMemory(what, rest.substr(0, rest.find('.')));
  }
  // Libraries that allocate for themselves, such as cuBLAS.
  if (message.find("_ALLOC_FAILED") != std::string_view::npos) {
    return OutOfDeviceMemory(what, message);
  }
  if (message.find("Storage size calculation overflowed") !=
      std::string_view::npos) {
    return OutOfMemory(what, "2^64 bytes");
  }
  return absl::InternalError(StrCat(what, ": ", message));
}

// Classifies an error of the device, whose further lines say how to debug it.
inline absl::Status DeviceError(std::string_view what,
                                const c10::AcceleratorError& error) {
  constexpr int32_t kMemoryAllocation = 2;  // as CUDA counts errors
  const std::string_view message = error.what_without_backtrace();
  if (error.get_error_code() == kMemoryAllocation) {
    return OutOfDeviceMemory(what, message);
  }
  return WithReason(absl::UnavailableError(StrCat(
                        what, ": ", message.substr(0, message.find('\n')))),
                    Reason{"gpu_has_failed"});
}

// Runs `body`, which returns a Status or StatusOr, and turns exceptions into
// INTERNAL, RESOURCE_EXHAUSTED if memory ran out, or UNAVAILABLE if the device
// has failed. Messages begin with `what`, which says what was being done.
template <typename Body>
auto CatchTorch(std::string_view what, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const c10::OutOfMemoryError& error) {
    return OutOfDeviceMemory(what, error.what_without_backtrace());
  } catch (const c10::AcceleratorError& error) {
    return DeviceError(what, error);
  } catch (const c10::Error& error) {
    return TorchError(what, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return OutOfMemory(what);
  } catch (const std::exception& error) {
    return TorchError(what, error.what());
  }
}

}  // namespace millrace
