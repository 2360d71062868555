// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// Where Linux tells of memory.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string cgroup = "/proc/self/cgroup";  // of this process
  std::string cgroups = "/sys/fs/cgroup";    // version 2, or 1 below "memory"
};

// Memory of the host, or the least that a control group (a container, a job of
// a batch system) around this process may have.
uint64_t HostMemoryBytes(const MemoryFiles& files = {});

// What of it can be had now without swapping: free, or pages of files on
// disks. (Shared memory is in neither.)
uint64_t AvailableMemoryBytes(const MemoryFiles& files = {});

}  // namespace millrace
