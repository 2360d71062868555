// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/copy.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "tests/ptxemu/queue.h"

namespace millrace::ptxemu {
namespace {

uint64_t AddressOf(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

bool IsPageable(const void* pointer, size_t bytes) {
  const Memory& memory = Memory::Get();
  return !memory.IsDeviceAddress(AddressOf(pointer)) &&
         !memory.IsPinned(pointer, bytes);
}

absl::StatusOr<uint8_t*> ResolveAnywhere(const void* pointer, size_t bytes) {
  if (!Memory::Get().IsDeviceAddress(AddressOf(pointer))) {
    return static_cast<uint8_t*>(const_cast<void*>(pointer));
  }
  return Memory::Get().Resolve(AddressOf(pointer), bytes);
}

absl::Status Copy(void* to, const void* from, size_t bytes) {
  Memory::Get().SetActingDevice(Memory::kEveryDevice);
  MILLRACE_ASSIGN_OR_RETURN(const uint8_t* source,
                            ResolveAnywhere(from, bytes));
  MILLRACE_ASSIGN_OR_RETURN(uint8_t * target, ResolveAnywhere(to, bytes));
  std::memmove(target, source, bytes);
  return absl::OkStatus();
}

}  // namespace

cudaError_t EnqueueCopy(Stream* stream, void* to, const void* from,
                        size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  if (IsPageable(from, bytes)) {
    const auto* const begin = static_cast<const uint8_t*>(from);
    const auto staged =
        std::make_shared<std::vector<uint8_t>>(begin, begin + bytes);
    Enqueue(stream, [=] { return Copy(to, staged->data(), bytes); });
  } else {
    Enqueue(stream, [=] { return Copy(to, from, bytes); });
  }
  return IsPageable(to, bytes) ? FinishStream(stream) : cudaSuccess;
}

cudaError_t FinishStream(Stream* stream) {
  WaitForStream(stream);
  return FaultOf(stream->device);
}

}  // namespace millrace::ptxemu
