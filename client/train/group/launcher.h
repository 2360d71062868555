// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace millrace {

// Starts `workers` copies of this program with the same arguments on this
// host, as ranks 0 .. workers - 1 of one group (with torchrun's variables), and
// waits for them. They share our stdout. Rank 0 shares our stderr; each line on
// the stderr of the others is printed after "[rank R] ". In a log in JSON, all
// get events with the member "rank" instead. If a rank does not end with
// status 0, the launcher ends the rest. It passes on interrupts. No rank
// outlives the launcher, however it ends.
// `threads` is the number of OpenMP threads of each rank; 0 means cores /
// workers.
// UNAVAILABLE: a rank failed (says which and how). INVALID_ARGUMENT: a rank was
// started with wrong options (says which). CANCELLED: interrupted.
absl::Status RunWorkers(char** argv, int workers, int threads);

// Returns whether RunWorkers() started this process.
bool IsWorker();

// Returns the secret of this worker's group, which RunWorkers() drew.
std::string LauncherSecret();

// Makes idle OpenMP threads sleep instead of spin, which would take cores from
// samplers and other ranks. OpenMP reads this setting before main(), so the
// program starts itself again unless OMP_WAIT_POLICY is set.
void EnsurePassiveThreads(char** argv);

}  // namespace millrace
