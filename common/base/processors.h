// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

// The number of processors that this process may use, at least 1: those of its
// affinity, which taskset, Slurm, systemd's CPUAffinity= and docker's
// --cpuset-cpus set, and not all of the machine. For default numbers of
// threads. Any thread may call it; the answer is that of the calling thread.
int UsableProcessors();

}  // namespace millrace
