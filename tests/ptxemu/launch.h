// SPDX-License-Identifier: Apache-2.0
// Runs kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "tests/ptxemu/instruction.h"

namespace millrace::ptxemu {

struct Extent {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;

  uint64_t Count() const { return uint64_t{x} * y * z; }
};

struct Launch {
  const Function* kernel;
  Extent grid;
  Extent block;
  size_t dynamic_shared_bytes = 0;
  std::vector<uint8_t> parameters;
  int resident_blocks = 1;  // blocks that run at a time
};

struct LaunchStatistics {
  uint64_t launches = 0;
  uint64_t threads = 0;
  uint64_t instructions = 0;
};
extern LaunchStatistics launch_statistics;

// Lays out arguments as a kernel reads them, from pointers to their values.
std::vector<uint8_t> PackArguments(const Function& kernel,
                                   void* const* arguments);

// Runs all blocks to their end, on this thread, in an order that `random`
// decides.
// INTERNAL: the kernel did what a device faults for; the message says what, and
// which thread did it where.
absl::Status RunLaunch(const Launch& launch, std::mt19937_64* random);

}  // namespace millrace::ptxemu
