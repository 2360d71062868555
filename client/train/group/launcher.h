// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace millrace {

// Starts `workers` copies of this program with the same arguments on this
// host, as ranks 0 .. workers - 1 of one group (torchrun's variables), and
// waits for them. Rank 0 shares our stdout and stderr; the stderr of the
// others comes line by line behind "[rank R] ". A rank that ends otherwise
// than with status 0 makes the launcher end the rest; an interrupt of the
// launcher is passed on. No rank outlives the launcher, however it ends.
// `threads`: each rank's, for the OpenMP of LibTorch; 0: cores / workers.
// UNAVAILABLE names the rank that failed and how, INVALID_ARGUMENT one that
// was started with wrong options; CANCELLED: interrupted.
absl::Status RunWorkers(char** argv, int workers, int threads);

// Whether this process was started by RunWorkers.
bool IsWorker();

// In a worker: the secret of its group, which RunWorkers drew.
std::string LauncherSecret();

// Makes idle OpenMP threads sleep instead of spin: spinning ones steal the
// cores that samplers and other ranks need. OpenMP reads this before main(),
// so the program starts itself again where it was not set.
void EnsurePassiveThreads(char** argv);

}  // namespace millrace
