// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/graph/device_members.h"

#include <cuda_runtime_api.h>

#include <span>
#include <string>
#include <utility>

#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_gate.h"
#include "common/graph/split_members.h"

namespace millrace::cuda {
namespace {

const uint64_t* WordsOf(const DeviceBlock& set) {
  return reinterpret_cast<const uint64_t*>(set.get());
}

}  // namespace

absl::StatusOr<const uint64_t*> DeviceMembers::Find(const Store& store,
                                                    TypeIndex type,
                                                    std::string_view split) {
  MILLRACE_ASSIGN_OR_RETURN(const SplitMembers* members,
                            store.FindMembers(type, split));
  if (members == nullptr) return nullptr;
  const std::pair key(type, std::string(split));
  {
    const MutexLock lock(&mutex_);
    const auto set = sets_.find(key);
    if (set != sets_.end()) return WordsOf(set->second);
  }
  // Without the lock, since it may take a while. Of two threads that upload the
  // same set, one does it in vain.
  absl::StatusOr<DeviceBlock> words;
  MILLRACE_ASSIGN_OR_RETURN(const bool enough,
                            DeviceGate::Of(device_)->Run([&] {
                              words = Upload(*members);
                              return !absl::IsResourceExhausted(words.status());
                            }));
  if (!enough) {
    return absl::FailedPreconditionError(StrCat(
        FirstLine(words.status()), "\nkeep less in the memory of this GPU"));
  }
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(words.status(), device_));
  const MutexLock lock(&mutex_);
  return WordsOf(sets_.try_emplace(key, *std::move(words)).first->second);
}

absl::StatusOr<DeviceBlock> DeviceMembers::Upload(
    const SplitMembers& members) const {
  const ScopedDevice current(device_);
  MILLRACE_RETURN_IF_ERROR(current.status());
  const std::span<const uint64_t> words = members.words();
  MILLRACE_ASSIGN_OR_RETURN(
      DeviceBlock set,
      AllocateDevice(device_, words.size_bytes(), "the nodes of a split"));
  constexpr char kCannotCopy[] = "cannot copy a split to GPU memory";
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaMemcpy(set.get(), words.data(), words.size_bytes(),
                            cudaMemcpyHostToDevice),
                 kCannotCopy));
  // The copy of pageable memory may still be under way.
  MILLRACE_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), kCannotCopy));
  return set;
}

}  // namespace millrace::cuda
