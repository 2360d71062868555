// SPDX-License-Identifier: Apache-2.0
#include "client/train/device/host_reducer.h"

#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace {

absl::Status HostReducer::Start(const at::Tensor& bucket) {
  if (collectives_.world() == 1) return absl::OkStatus();
  return CatchTorch("copying gradients to the host", [&] {
    if (bucket.is_cpu()) return collectives_.StartSum(bucket);
    copies_.push_back({bucket, bucket.cpu()});
    return collectives_.StartSum(copies_.back().on_host);
  });
}

absl::Status HostReducer::Finish() {
  const std::vector<Copy> copies = std::exchange(copies_, {});
  MILLRACE_RETURN_IF_ERROR(collectives_.FinishSums());
  return CatchTorch("copying gradients to the device", [&] {
    for (const Copy& copy : copies) copy.bucket.copy_(copy.on_host);
    return absl::OkStatus();
  });
}

}  // namespace millrace
