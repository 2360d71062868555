// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/rank_device.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/field_error.h"
#include "common/base/status_lines.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"

namespace millrace::cuda {
namespace {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// Names a GPU so that no other GPU of any host has the same name. Parts of a
// GPU (MIG) share its place on the bus.
absl::StatusOr<std::string> NameOfDevice(int device) {
  cudaDeviceProp properties;
  char bus[32] = {};
  cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetPCIBusId(bus, sizeof bus, device);
  }
  if (error != cudaSuccess) return DeviceFailureStatus(error, device);
  const std::string_view uuid(properties.uuid.bytes,
                              sizeof properties.uuid.bytes);
  return StrCat(properties.name, " at ", bus, " of host ", HostName(),
                " (UUID ", absl::BytesToHexString(AbslView(uuid)), ")");
}

}  // namespace

absl::StatusOr<int> DeviceOfRank(std::optional<int> local_rank, int devices) {
  if (devices == 1) return 0;
  if (!local_rank.has_value()) {
    return absl::FailedPreconditionError(
        StrCat("this rank sees ", devices,
               " GPUs, and its number on its host is not known\nset LOCAL_RANK "
               "to its place among the ranks of its host, from 0"));
  }
  if (*local_rank < devices) return *local_rank;
  return WithReason(
      absl::FailedPreconditionError(
          StrCat("this rank is number ", *local_rank,
                 " on its host (from 0), but sees only ", devices, " GPUs")),
      Reason{"too_few_gpus"});
}

absl::Status WithDeviceReason(const absl::Status& status) {
  const std::string line = FirstLine(status);
  Reason reason{"no_gpu"};
  if (absl::IsResourceExhausted(status)) {
    reason = Reason{"gpu_is_full"};
  } else if (absl::IsUnavailable(status)) {
    reason = Reason{"gpu_has_failed"};
  } else if (ReasonOf(status) == kBusyDevice.word) {
    reason = kBusyDevice;
  }
  return WithReason(absl::Status(status.code(), line), reason);
}

absl::Status CheckOwnDevices(const NcclGroup& group) {
  MILLRACE_ASSIGN_OR_RETURN(const std::string own, NameOfDevice(group.device));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            group.gather(own));
  for (auto name = names.begin(); name != names.end(); ++name) {
    const auto same = std::find(name + 1, names.end(), *name);
    if (same == names.end()) continue;
    return WithReason(
        absl::FailedPreconditionError(StrCat(
            "ranks ", name - names.begin(), " and ", same - names.begin(),
            " have the same GPU, which NCCL does not allow: ", *name)),
        Reason{"shared_gpu"});
  }
  return absl::OkStatus();
}

}  // namespace millrace::cuda
