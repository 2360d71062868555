// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/trainer/cuda_accelerator.h"

#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <string>
#include <string_view>
#include <utility>

#include "client/cuda/cuda_device_cache.h"
#include "client/cuda/rank_device.h"
#include "client/cuda/trainer/cuda_operators.h"
#include "client/cuda/trainer/nccl_gradients.h"
#include "client/cuda/trainer/shared_idle_memory.h"
#include "client/tensor/torch_status.h"
#include "client/train/device/host_reducer.h"
#include "common/base/bytes_text.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/pinned_memory.h"

namespace millrace::cuda {
namespace {

constexpr char kKind[] = "cuda";

class CudaAccelerator final : public Accelerator {
 public:
  CudaAccelerator(DeviceInfo info, Backend backend)
      : info_(std::move(info)),
        current_(info_.index),
        backend_(backend),
        memory_(std::make_shared<PinnedMemory>(info_.index)),
        idle_(info_.index) {}

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

  // Counts what is kept for later as free.
  absl::Status CheckMemory(std::string_view what,
                           const MemoryNeed& need) const override {
    MILLRACE_ASSIGN_OR_RETURN(const DeviceMemoryUse use,
                              MemoryUseOf(info_.index));
    if (need.process <= use.free_bytes + KeptByTorch()) return absl::OkStatus();
    idle_.GiveBack();
    MILLRACE_ASSIGN_OR_RETURN(const DeviceMemoryUse least,
                              MemoryUseOf(info_.index));
    const uint64_t available = least.free_bytes + KeptByTorch();
    if (need.process <= available) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        StrCat(what, " needs ", BytesText(need.process), " of memory of ",
               name(), ", but ", BytesText(available), " of ",
               BytesText(least.total_bytes), " is available"));
  }

  Backend backend() const override { return backend_; }
  absl::StatusOr<std::unique_ptr<Reducer>> MakeReducer(
      Collectives& collectives) override {
    // A group of one has nothing to add up.
    if (collectives.world() == 1 || backend_ == Backend::kGloo) {
      return std::make_unique<HostReducer>(collectives);
    }
    return ConnectNcclGradients(collectives, info_.index);
  }

 private:
  // Bytes that LibTorch keeps for later tensors.
  uint64_t KeptByTorch() const {
    using Stat = c10::CachingAllocator::StatType;
    const auto stats =
        c10::cuda::CUDACachingAllocator::getDeviceStats(device().index());
    const auto all = static_cast<size_t>(Stat::AGGREGATE);
    return static_cast<uint64_t>(stats.reserved_bytes[all].current -
                                 stats.allocated_bytes[all].current);
  }

  const DeviceInfo info_;
  // The thread that trains has no other device, whatever a source opens.
  const ScopedDevice current_;
  const Backend backend_;
  const std::shared_ptr<ArrayMemory> memory_;
  const SharedIdleMemory idle_;
};

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
  return opened.ok() || absl::IsResourceExhausted(opened)
             ? opened
             : absl::FailedPreconditionError(opened.message());
}

absl::StatusOr<int> Count() {
  absl::StatusOr<int> devices = CountDevices();
  if (!devices.ok()) return WithDeviceReason(devices.status());
  return devices;
}

absl::StatusOr<int> ChooseDevice(const GroupAddress& rank) {
  MILLRACE_ASSIGN_OR_RETURN(const int devices, Count());
  const bool alone = rank.world == 1;
  return DeviceOfRank(alone ? rank.local_rank.value_or(0) : rank.local_rank,
                      devices);
}

absl::StatusOr<std::unique_ptr<Accelerator>> Open(const GroupAddress& rank,
                                                  Backend backend) {
  MILLRACE_ASSIGN_OR_RETURN(const int index, ChooseDevice(rank));
  absl::StatusOr<DeviceInfo> opened = OpenDevice(index);
  if (!opened.ok()) return WithDeviceReason(opened.status());
  const absl::Status usable = OpenForTorch(index);
  if (!usable.ok()) return WithDeviceReason(usable);
  UseCudaOperators();
  return std::make_unique<CudaAccelerator>(*std::move(opened), backend);
}

}  // namespace

AcceleratorKind CudaAcceleratorKind() {
  return {
      .name = kKind, .backend = Backend::kNccl, .count = Count, .open = Open};
}

}  // namespace millrace::cuda
