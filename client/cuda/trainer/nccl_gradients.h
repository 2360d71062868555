// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/train/device/reducer.h"
#include "client/train/group/collectives.h"

namespace millrace::cuda {

// Returns what adds up gradients on CUDA device `device`, which is open, by
// NCCL. All ranks call it. Keeps a reference to `collectives`. Fails like
// NcclReducer::Connect.
absl::StatusOr<std::unique_ptr<Reducer>> ConnectNcclGradients(
    Collectives& collectives, int device);

}  // namespace millrace::cuda
