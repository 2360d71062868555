// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

// The files in which Linux reports memory.
struct MemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string cgroup = "/proc/self/cgroup";  // of this process
  std::string cgroups = "/sys/fs/cgroup";    // version 2, or 1 below "memory"
  std::string statm = "/proc/self/statm";    // of this process
};

// Memory of the host, or the lowest memory limit of the control groups
// (containers, batch jobs) that contain this process, if that is less.
uint64_t HostMemoryBytes(const MemoryFiles& files = {});

// Memory that this process can allocate now without swapping: memory that is
// free or holds pages of files on disk (shared memory is neither), but no more
// than its address space limit (ulimit -v) leaves.
uint64_t AvailableMemoryBytes(const MemoryFiles& files = {});

// Number of bytes about to be allocated.
struct MemoryNeed {
  uint64_t process = 0;  // by this process
  uint64_t host = 0;     // by all processes of the host that do the same
};

// Checks that there is enough memory for an allocation whose size the user
// decides. RESOURCE_EXHAUSTED: "WHAT needs 24.1 GiB of memory, but 15.2 GiB is
// available\nADVICE" (without advice one line), if `need.process` exceeds what
// is left of this process's address space limit, or `need.host` what the host
// has available. Up to 16 MiB on the host are not checked. This is an estimate:
// other processes may take the memory in the meantime. All processes that
// `need.host` counts must check before any of them allocates.
absl::Status CheckMemory(std::string_view what, const MemoryNeed& need,
                         std::string_view advice = {},
                         const MemoryFiles& files = {});
// The same for `bytes` that only this process allocates.
absl::Status CheckMemory(std::string_view what, uint64_t bytes,
                         std::string_view advice = {});

// The product and the sum of non-negative numbers; results beyond 64 bits
// become 2^64 - 1.
uint64_t SaturatedProduct(std::initializer_list<int64_t> numbers);
uint64_t SaturatedSum(std::initializer_list<uint64_t> numbers);

}  // namespace millrace
