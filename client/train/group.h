// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
  // For the log: which variables say so, or why those that are set do not
  // count; empty: none is set.
  std::string origin{};
};

// The place that the environment gives this process, by the first of these
// that is set: torchrun's RANK and WORLD_SIZE, mpirun's (Open MPI, MVAPICH2,
// PMI as MPICH and Intel MPI have it), and srun's SLURM_PROCID and
// SLURM_STEP_NUM_TASKS. MASTER_ADDR and MASTER_PORT say where to meet; without
// them, under Slurm, it is the step's first host and a port made of the
// numbers of job and step. Without any: a group of one. So it is in a shell or
// batch script of Slurm, whose processes srun did not start.
// INVALID_ARGUMENT names a variable that is missing or has a bad value.
absl::StatusOr<GroupAddress> GroupFromEnvironment();

}  // namespace millrace
