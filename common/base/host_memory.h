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

// Memory of the host, or the least that a control group (a container, a job of
// a batch system) around this process may have.
uint64_t HostMemoryBytes(const MemoryFiles& files = {});

// How much of it this process can get now without swapping: free, or pages of
// files on disks (shared memory is in neither), and within its limit of address
// space (ulimit -v).
uint64_t AvailableMemoryBytes(const MemoryFiles& files = {});

// Bytes that are about to be allocated.
struct MemoryNeed {
  uint64_t process = 0;  // by this process
  uint64_t host = 0;     // by all processes of the host that do the same
};

// For what is about to be allocated, where a number of the user decides how
// much: RESOURCE_EXHAUSTED "WHAT needs 24.1 GB of memory, but 15.2 GB are
// available\nADVICE" unless `need.process` is left of this process's limit of
// address space, and `need.host` of the host's memory is available. Some MB
// always are. An estimate: other processes may take the memory meanwhile. All
// processes that `need.host` counts must check before any of them allocates.
absl::Status CheckMemory(std::string_view what, const MemoryNeed& need,
                         std::string_view advice,
                         const MemoryFiles& files = {});
// The same for `bytes` that only this process allocates.
absl::Status CheckMemory(std::string_view what, uint64_t bytes,
                         std::string_view advice);

// The product and the sum of non-negative numbers; results beyond 64 bits
// become 2^64 - 1.
uint64_t SaturatedProduct(std::initializer_list<int64_t> numbers);
uint64_t SaturatedSum(std::initializer_list<uint64_t> numbers);

// "24.1 GB", "512 bytes"; in powers of 1000.
std::string BytesText(uint64_t bytes);

}  // namespace millrace
