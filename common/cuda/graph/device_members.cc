// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/graph/device_members.h"

#include <cuda_runtime_api.h>

#include <span>

#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_gate.h"
#include "common/graph/split_members.h"

namespace millrace::cuda {

absl::StatusOr<const uint64_t*> DeviceMembers::Find(const Store& store,
                                                    TypeIndex type,
                                                    std::string_view split) {
  MILLRACE_ASSIGN_OR_RETURN(const SplitMembers* members,
                            store.FindMembers(type, split));
  if (members == nullptr) return nullptr;
  // Held during the upload, since others would wait for the same set.
  const MutexLock lock(&mutex_);
  const std::pair key(type, std::string(split));
  auto found = sets_.find(key);
  if (found == sets_.end()) {
    absl::StatusOr<DeviceBlock> set;
    const DeviceGate::Outcome passed = DeviceGate::Of(device_)->Run([&] {
      set = Upload(*members);
      return !absl::IsResourceExhausted(set.status());
    });
    if (passed == DeviceGate::Outcome::kBusy) {
      return DeviceGate::BusyError(device_);
    }
    if (absl::IsResourceExhausted(set.status())) {
      return absl::FailedPreconditionError(StrCat(
          FirstLine(set.status()), "\nkeep less in the memory of this GPU"));
    }
    MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(set.status()));
    found = sets_.emplace(key, *std::move(set)).first;
  }
  return reinterpret_cast<const uint64_t*>(found->second.get());
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
