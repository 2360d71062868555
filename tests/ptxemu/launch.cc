// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/launch.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "common/base/status_macros.h"
#include "tests/ptxemu/block.h"
#include "tests/ptxemu/settings.h"

namespace millrace::ptxemu {

LaunchStatistics launch_statistics;

std::vector<uint8_t> PackArguments(const Function& kernel,
                                   void* const* arguments) {
  std::vector<uint8_t> packed(kernel.parameter_bytes);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter& parameter = kernel.parameters[i];
    std::memcpy(packed.data() + parameter.offset, arguments[i],
                parameter.bytes);
  }
  return packed;
}

absl::Status RunLaunch(const Launch& launch, std::mt19937_64* random) {
  const uint64_t blocks = launch.grid.Count();
  ++launch_statistics.launches;
  launch_statistics.threads += blocks * launch.block.Count();
  const uint64_t last_instruction =
      launch_statistics.instructions + GetSettings().max_instructions;
  uint64_t started = 0;
  std::vector<std::unique_ptr<Block>> running;
  // Blocks start in order, as on a device.
  while (started < blocks || !running.empty()) {
    while (started < blocks &&
           running.size() < static_cast<size_t>(launch.resident_blocks)) {
      running.push_back(
          std::make_unique<Block>(launch, started, last_instruction, random));
      ++started;
    }
    const size_t chosen = (*random)() % running.size();
    MILLRACE_RETURN_IF_ERROR(running[chosen]->RunRound());
    if (running[chosen]->HasEnded()) {
      running.erase(running.begin() + static_cast<ptrdiff_t>(chosen));
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace::ptxemu
