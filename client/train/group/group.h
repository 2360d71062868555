// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace millrace {

// This process's place in a group of trainers.
struct GroupAddress {
  int rank = 0;
  int world = 1;
  // Where the ranks meet: rank 0 listens there.
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int local_world = 1;  // ranks on this host
  // This process's place among them, from 0; unknown if the launcher does not
  // say.
  std::optional<int> local_rank = std::nullopt;
  // torchrun itself listens at that port, so rank 0 must not.
  bool agent_listens = false;
  // Signs the messages between ranks; if empty, anyone can forge them.
  std::string secret{};
  // For the log: which variables this came from, or why those that are set were
  // ignored; empty if none is set.
  std::string origin{};
};

// Returns this process's place according to its environment. The first that is
// set decides: torchrun's RANK and WORLD_SIZE, mpirun's variables (of Open MPI,
// MVAPICH2, or PMI for MPICH and Intel MPI), srun's SLURM_PROCID and
// SLURM_STEP_NUM_TASKS. MASTER_ADDR and MASTER_PORT say where to meet; without
// them, under Slurm, it is the step's first host and a port derived from the
// numbers of job and step. If no launcher's variables are set, or if srun did
// not start the process (as in a shell or batch script of Slurm), returns a
// group of one.
// The same launchers say how many ranks a host has and which of them this is.
// INVALID_ARGUMENT: a variable is missing or has a bad value (names it).
absl::StatusOr<GroupAddress> GroupFromEnvironment();

}  // namespace millrace
