// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/trainer/cuda_accelerator.h"

#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <string>
#include <string_view>
#include <utility>

#include "client/cuda/cuda_device_cache.h"
#include "client/cuda/trainer/cuda_operators.h"
#include "client/cuda/trainer/nccl_gradients.h"
#include "client/tensor/torch_status.h"
#include "client/train/device/host_reducer.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/pinned_memory.h"

namespace millrace::cuda {
namespace {

constexpr char kKind[] = "cuda";

class CudaAccelerator final : public Accelerator {
 public:
  explicit CudaAccelerator(DeviceInfo info)
      : info_(std::move(info)),
        memory_(std::make_shared<PinnedMemory>(info_.index)) {}

  std::string kind() const override { return kKind; }
  c10::Device device() const override {
    return {c10::kCUDA, static_cast<c10::DeviceIndex>(info_.index)};
  }
  std::string name() const override {
    return StrCat("CUDA device ", info_.index, " (", info_.name, ")");
  }

  std::shared_ptr<ArrayMemory> memory() override { return memory_; }
  std::shared_ptr<DeviceCache> MakeDeviceCache() override {
    return std::make_shared<CudaDeviceCache>(info_.index);
  }

  // Counts what LibTorch keeps for later as free.
  absl::Status CheckMemory(std::string_view what,
                           const MemoryNeed& need) const override {
    MILLRACE_ASSIGN_OR_RETURN(const DeviceMemoryUse use,
                              MemoryUseOf(info_.index));
    using Stat = c10::CachingAllocator::StatType;
    const auto stats =
        c10::cuda::CUDACachingAllocator::getDeviceStats(device().index());
    const auto all = static_cast<size_t>(Stat::AGGREGATE);
    const auto kept = static_cast<uint64_t>(stats.reserved_bytes[all].current -
                                            stats.allocated_bytes[all].current);
    if (need.process <= use.free_bytes + kept) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        StrCat(what, " needs ", BytesText(need.process), " of memory of ",
               name(), ", but ", BytesText(use.free_bytes + kept), " of ",
               BytesText(use.total_bytes), " is available"));
  }

  absl::StatusOr<std::unique_ptr<Reducer>> MakeReducer(
      Collectives& collectives) override {
    // A group of one has nothing to add up.
    if (collectives.world() == 1) {
      return std::make_unique<HostReducer>(collectives);
    }
    return ConnectNcclGradients(collectives, info_.index);
  }

 private:
  const DeviceInfo info_;
  const std::shared_ptr<ArrayMemory> memory_;
};

absl::StatusOr<int> ChooseDevice(const GroupAddress& rank) {
  if (rank.world == 1) return rank.local_rank.value_or(0);
  if (rank.local_rank.has_value()) return *rank.local_rank;
  return absl::FailedPreconditionError(
      StrCat("rank ", rank.rank, " of ", rank.world,
             " does not know which GPU of its host is its own\nset LOCAL_RANK "
             "to its place among the ranks of the host, from 0"));
}

// Runs a kernel of LibTorch, which has its own list of GPUs that it supports.
absl::Status OpenForTorch(int index) {
  const auto number = static_cast<c10::DeviceIndex>(index);
  const absl::Status opened =
      CatchTorch("LibTorch cannot use the GPU", [&]() -> absl::Status {
        c10::cuda::set_device(number);
        const auto options = at::TensorOptions(at::kFloat)
                                 .device(c10::Device(c10::kCUDA, number));
        if (at::zeros({1}, options).add(1).item().toDouble() == 1) {
          return absl::OkStatus();
        }
        return absl::InternalError("LibTorch's sums on the GPU are wrong");
      });
  return opened.ok() ? opened : absl::FailedPreconditionError(opened.message());
}

// The advice of OpenDevice() is for samplers.
absl::Status NoGpu(const absl::Status& status) {
  const absl::string_view message = status.message();
  return WithReason(
      absl::Status(status.code(), message.substr(0, message.find('\n'))),
      Reason{"no_gpu"});
}

absl::StatusOr<std::unique_ptr<Accelerator>> Open(const GroupAddress& rank) {
  MILLRACE_ASSIGN_OR_RETURN(const int index, ChooseDevice(rank));
  absl::StatusOr<DeviceInfo> opened = OpenDevice(index);
  if (!opened.ok()) return NoGpu(opened.status());
  DeviceInfo& info = *opened;
  const absl::Status usable = OpenForTorch(index);
  if (!usable.ok()) return NoGpu(usable);
  UseCudaOperators();
  return std::make_unique<CudaAccelerator>(std::move(info));
}

}  // namespace

AcceleratorKind CudaAcceleratorKind() { return {kKind, Open}; }

}  // namespace millrace::cuda
