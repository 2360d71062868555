// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace millrace::cuda {

// A rank's place in a group of trainers on GPUs, and its ways to the others
// beside NCCL. The functions are called only by the thread that uses the group,
// and must work as long as anything that was made with it lives.
struct NcclGroup {
  int rank = 0;
  int world = 1;
  int device = 0;  // CUDA's; must be open
  // How long the ranks wait for each other to be connected.
  absl::Duration start_timeout = absl::Minutes(5);
  // Returns rank 0's bytes on every rank. Must not wait for ever.
  std::function<absl::StatusOr<std::string>(std::string)> share;
  // Returns the bytes of all ranks, in their order, on every rank. Waits for
  // all of them as long as none is lost.
  std::function<absl::StatusOr<std::vector<std::string>>(std::string)> gather;
  // UNAVAILABLE: a rank is lost or has failed (names it). OK while none is
  // known to be. Is called about every millisecond while this rank waits.
  std::function<absl::Status()> loss = [] { return absl::OkStatus(); };
  // The same, after an error that a lost rank may have caused: waits until it
  // is known, for as long as that takes at most.
  std::function<absl::Status()> wait_for_loss = [] { return absl::OkStatus(); };
};

}  // namespace millrace::cuda
