// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// CPU time, user and system, that all threads of this process have used so far.
double ProcessCpuSeconds();

// Peak resident memory of this process so far, including mapped files' pages.
int64_t ProcessPeakRssBytes();

// What the kernel says about this process now. What cannot be read is 0.
struct ProcessState {
  uint64_t resident_bytes = 0;  // including mapped files' pages
  uint64_t virtual_bytes = 0;
  uint64_t threads = 0;
};

// Reads a small file of /proc. Any thread may call it.
ProcessState ReadProcessState();

// When this process started, in seconds of Unix time, as the clock was set when
// it was first asked. Any thread may call it.
double ProcessStartUnixSeconds();

// The number of file descriptors that are open now, and the limit on it. The
// first reads a directory of /proc as long as the number. Any thread may call
// them.
uint64_t OpenFileDescriptors();
uint64_t MaxFileDescriptors();

}  // namespace millrace
