// SPDX-License-Identifier: Apache-2.0
#include "client/train/device/host_reducer.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

c10::Event NewEvent(c10::Device device) {
  return {device.type(), c10::EventFlag::PYTORCH_DEFAULT};
}

c10::Stream CurrentStream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// Only copies of a GPU's tensors from and to pinned memory are asynchronous.
at::Tensor HostBuffer(const at::Tensor& bucket) {
  return at::empty(
      bucket.sizes(),
      at::TensorOptions(bucket.dtype()).pinned_memory(bucket.is_cuda()));
}

}  // namespace

absl::Status HostReducer::Start(const at::Tensor& bucket) {
  if (collectives_.world() == 1) return absl::OkStatus();
  if (bucket.is_cpu()) return collectives_.StartSum(bucket);
  return CatchTorch("copying gradients to the host", [&] {
    CopyToHost(bucket);
    return StartSums(/*all=*/false);
  });
}

absl::Status HostReducer::Finish() {
  return CatchTorch("copying gradients to the device", [&]() -> absl::Status {
    MILLRACE_RETURN_IF_ERROR(StartSums(/*all=*/true));
    MILLRACE_RETURN_IF_ERROR(collectives_.FinishSums());
    if (copied_ > 0) CopyToDevice();
    copied_ = started_ = 0;
    return absl::OkStatus();
  });
}

void HostReducer::CopyToHost(const at::Tensor& bucket) {
  if (copied_ == copies_.size()) {
    copies_.push_back({bucket, HostBuffer(bucket), NewEvent(bucket.device())});
  }
  Copy& copy = copies_[copied_++];
  copy.bucket = bucket;
  if (copy.on_host.sizes() != bucket.sizes()) copy.on_host = HostBuffer(bucket);
  const c10::Stream stream = CurrentStream(bucket.device());
  if (returned_.has_value()) returned_->block(stream);
  copy.on_host.copy_(bucket, /*non_blocking=*/true);
  copy.copied.record(stream);
}

absl::Status HostReducer::StartSums(bool all) {
  for (; started_ < copied_; ++started_) {
    const Copy& copy = copies_[started_];
    if (all) {
      copy.copied.synchronize();
    } else if (!copy.copied.query()) {
      break;
    }
    MILLRACE_RETURN_IF_ERROR(collectives_.StartSum(copy.on_host));
  }
  return absl::OkStatus();
}

void HostReducer::CopyToDevice() {
  for (size_t i = 0; i < copied_; ++i) {
    copies_[i].bucket.copy_(copies_[i].on_host, /*non_blocking=*/true);
  }
  const c10::Device device = copies_[0].bucket.device();
  if (!returned_.has_value()) returned_ = NewEvent(device);
  returned_->record(CurrentStream(device));
}

}  // namespace millrace
