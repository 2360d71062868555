// SPDX-License-Identifier: Apache-2.0
#include "common/base/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <vector>

#include "common/base/bytes_text.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// Smaller allocations are not worth reading several files for.
constexpr uint64_t kUncheckedBytes = 16 << 20;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The names that the two versions of control groups give to the same things.
// Only the pages on the file LRU lists count as files: a group's "cache" or
// "file" counts shared memory too, which cannot be dropped.
struct Version {
  const char* limit;
  const char* used;
  const char* files[2];  // in memory.stat
};
constexpr Version kVersion1 = {"memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               {"total_active_file", "total_inactive_file"}};
constexpr Version kVersion2 = {
    "memory.max", "memory.current", {"active_file", "inactive_file"}};

// Reads the number at the start of a file, or the first one after `name`.
std::optional<uint64_t> ReadNumber(const std::filesystem::path& path,
                                   const std::string& name = "") {
  std::ifstream file(path);
  std::string word;
  while (!name.empty() && file >> word && word != name) {
  }
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

struct Group {
  uint64_t limit;
  uint64_t available;
};

// Returns nothing if the group does not exist or has no limit ("max").
std::optional<Group> ReadGroup(const std::filesystem::path& folder,
                               const Version& version) {
  const uint64_t limit = ReadNumber(folder / version.limit).value_or(0);
  if (limit == 0) return std::nullopt;
  uint64_t kept = ReadNumber(folder / version.used).value_or(0);
  for (const char* name : version.files) {
    kept -=
        std::min(kept, ReadNumber(folder / "memory.stat", name).value_or(0));
  }
  return Group{limit, limit - std::min(limit, kept)};
}

// Where the control groups with memory limits are, their version, and the group
// of this process. Lines of `files.cgroup` have the form
// "ID:CONTROLLERS:/PATH"; for version 2, CONTROLLERS is empty.
struct Place {
  std::filesystem::path root;
  Version version;
  std::filesystem::path path;
};
Place FindPlace(const MemoryFiles& files) {
  Place place = {files.cgroups, kVersion2, {}};
  std::ifstream lines(files.cgroup);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = ",";
    controllers.append(line, first + 1, second - first - 1);
    controllers += ',';
    const auto path =
        std::filesystem::path(line.substr(second + 1)).relative_path();
    if (controllers.find(",memory,") != std::string::npos) {
      return {place.root / "memory", kVersion1, path};
    }
    if (controllers == ",,") place.path = path;
  }
  return place;
}

// The lowest values among all groups that contain this process. In a container
// the path may be the host's; then only the root exists.
Group TightestGroup(const MemoryFiles& files) {
  Group tightest = {kUnlimited, kUnlimited};
  Place place = FindPlace(files);
  while (true) {
    const auto group = ReadGroup(place.root / place.path, place.version);
    if (group.has_value()) {
      tightest.limit = std::min(tightest.limit, group->limit);
      tightest.available = std::min(tightest.available, group->available);
    }
    if (place.path.empty()) return tightest;
    place.path = place.path.parent_path();
  }
}

uint64_t HostMemoryLeft(const MemoryFiles& files) {
  const std::optional<uint64_t> kib =
      ReadNumber(files.meminfo, "MemAvailable:");
  const uint64_t bytes = kib ? *kib * 1024 : HostMemoryBytes(files);
  return std::min(bytes, TightestGroup(files).available);
}

uint64_t AddressSpaceLeft(const MemoryFiles& files) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kUnlimited;
  }
  const uint64_t used = ReadNumber(files.statm).value_or(0) *
                        static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

}  // namespace

uint64_t HostMemoryBytes(const MemoryFiles& files) {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const uint64_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(bytes, TightestGroup(files).limit);
}

uint64_t AvailableMemoryBytes(const MemoryFiles& files) {
  return std::min(HostMemoryLeft(files), AddressSpaceLeft(files));
}

absl::Status CheckMemory(std::string_view what, const MemoryNeed& need,
                         std::string_view advice, const MemoryFiles& files) {
  if (need.host <= kUncheckedBytes) return absl::OkStatus();
  const std::string second_line = advice.empty() ? "" : StrCat("\n", advice);
  const uint64_t address_space = AddressSpaceLeft(files);
  if (need.process > address_space) {
    const char* where = need.process < need.host ? " in one process" : "";
    return absl::ResourceExhaustedError(
        StrCat(what, " needs ", BytesText(need.process), " of memory", where,
               ", but ", BytesText(address_space),
               " is available within ulimit -v", second_line));
  }
  const uint64_t host = HostMemoryLeft(files);
  if (need.host <= host) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat(what, " needs ", BytesText(need.host), " of memory, but ",
             BytesText(host), " is available", second_line));
}

absl::Status CheckMemory(std::string_view what, uint64_t bytes,
                         std::string_view advice) {
  return CheckMemory(what, MemoryNeed{bytes, bytes}, advice);
}

uint64_t SaturatedProduct(std::initializer_list<int64_t> numbers) {
  // A factor of zero makes the product zero, even after an overflow.
  uint64_t product = 1;
  bool overflow = false;
  for (const int64_t number : numbers) {
    if (number <= 0) return 0;
    overflow |= __builtin_mul_overflow(product, static_cast<uint64_t>(number),
                                       &product);
  }
  return overflow ? kUnlimited : product;
}

uint64_t SaturatedSum(std::initializer_list<uint64_t> numbers) {
  uint64_t sum = 0;
  for (const uint64_t number : numbers) {
    if (__builtin_add_overflow(sum, number, &sum)) return kUnlimited;
  }
  return sum;
}

}  // namespace millrace
