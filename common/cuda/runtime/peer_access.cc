// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/peer_access.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {

absl::StatusOr<bool> EnablePeerAccess(int device, int peer) {
  if (device == peer) return true;
  const std::string failure = StrCat("cannot use the memory of CUDA device ",
                                     peer, " from device ", device);
  int can_access = 0;
  MILLRACE_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceCanAccessPeer(&can_access, device, peer), failure));
  if (can_access == 0) return false;
  const ScopedDevice current(device);
  MILLRACE_RETURN_IF_ERROR(current.status());
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer, /*flags=*/0);
  if (enabled == cudaErrorPeerAccessAlreadyEnabled ||
      enabled == cudaErrorTooManyPeers) {
    IgnoreFailure(enabled);
    return enabled == cudaErrorPeerAccessAlreadyEnabled;
  }
  MILLRACE_RETURN_IF_ERROR(CudaStatus(enabled, failure));
  return true;
}

absl::StatusOr<bool> EnablePeerAccess(const std::vector<int>& devices) {
  bool all = true;
  for (const int device : devices) {
    for (const int peer : devices) {
      MILLRACE_ASSIGN_OR_RETURN(const bool enabled,
                                EnablePeerAccess(device, peer));
      all = all && enabled;
    }
  }
  return all;
}

}  // namespace millrace::cuda
