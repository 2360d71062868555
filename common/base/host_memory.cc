// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace millrace {
namespace {

constexpr char kContainer[] = "/sys/fs/cgroup/";

// The number that is all of a file, or that follows `name` in it.
std::optional<uint64_t> ReadNumber(const std::string& path,
                                   const std::string& name = "") {
  std::ifstream file(path);
  std::string word;
  while (!name.empty() && file >> word && word != name) {
  }
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Nothing where there is no container, or one without a limit ("max").
std::optional<uint64_t> ContainerLimit() {
  const std::optional<uint64_t> limit =
      ReadNumber(std::string(kContainer) + "memory.max");
  return limit.value_or(0) > 0 ? limit : std::nullopt;
}

uint64_t ContainerAvailableBytes() {
  const std::string folder = kContainer;
  const std::optional<uint64_t> limit = ContainerLimit();
  const std::optional<uint64_t> used = ReadNumber(folder + "memory.current");
  if (!limit || !used) return std::numeric_limits<uint64_t>::max();
  const uint64_t files = ReadNumber(folder + "memory.stat", "file").value_or(0);
  const uint64_t kept = *used - std::min(*used, files);
  return *limit - std::min(*limit, kept);
}

}  // namespace

uint64_t HostMemoryBytes() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const uint64_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(bytes, ContainerLimit().value_or(bytes));
}

uint64_t AvailableMemoryBytes() {
  const std::optional<uint64_t> kib =
      ReadNumber("/proc/meminfo", "MemAvailable:");
  const uint64_t bytes = kib ? *kib * 1024 : HostMemoryBytes();
  return std::min(bytes, ContainerAvailableBytes());
}

}  // namespace millrace
