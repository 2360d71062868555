// SPDX-License-Identifier: Apache-2.0
// Which GPU a rank of a group of trainers has.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cuda/nccl_group.h"

namespace millrace::cuda {

// Returns the GPU of a rank that is number `local_rank` on its host and sees
// `devices` GPUs, at least 1: the only one, or that with its own number.
// FAILED_PRECONDITION: it has no number, or there are too few GPUs.
absl::StatusOr<int> DeviceOfRank(std::optional<int> local_rank, int devices);

// Returns an error of CountDevices() or OpenDevice() with a reason in the place
// of its second line, which is not for trainers.
absl::Status WithDeviceReason(const absl::Status& status);

// Checks that no other rank has the GPU of this one, which must be open. All
// ranks call it. FAILED_PRECONDITION: two ranks have the same GPU (names them,
// on all ranks). UNAVAILABLE: a rank is lost, or the GPU has failed.
absl::Status CheckOwnDevices(const NcclGroup& group);

}  // namespace millrace::cuda
