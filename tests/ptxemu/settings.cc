// SPDX-License-Identifier: Apache-2.0
#include "tests/ptxemu/settings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/ptxemu/environment.h"

namespace millrace::ptxemu {
namespace {

Schedule ReadSchedule() {
  const std::string value = TextVariable("PTXEMU_SCHED", "random");
  if (value == "random") return Schedule::kRandom;
  if (value == "eager") return Schedule::kEager;
  if (value == "lazy") return Schedule::kLazy;
  RefuseVariable("PTXEMU_SCHED", value);
}

Background ReadBackground() {
  if (std::getenv("PTXEMU_BACKGROUND") == nullptr) {
    return Background::kForLasting;
  }
  return NumberVariable("PTXEMU_BACKGROUND", 0) != 0 ? Background::kAlways
                                                     : Background::kNever;
}

std::optional<int> ReadGrain() {
  if (std::getenv("PTXEMU_GRAIN") == nullptr) return std::nullopt;
  return static_cast<int>(NumberVariable("PTXEMU_GRAIN", 0));
}

// As with CUDA, the list ends at the first number that names no device.
std::vector<int> ReadVisibleDevices() {
  const int all = std::min(
      static_cast<int>(NumberVariable("PTXEMU_DEVICES", 1)), kMaxDevices);
  std::vector<int> visible;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) {
    for (int device = 0; device < all; ++device) visible.push_back(device);
    return visible;
  }
  for (const absl::string_view word : absl::StrSplit(list, ',')) {
    int device = 0;
    if (!absl::SimpleAtoi(word, &device) || device < 0 || device >= all) break;
    visible.push_back(device);
  }
  return visible;
}

// Reads "cudaMalloc:3=2,cudaMemcpyAsync:1=700!".
std::map<std::string, std::vector<PlannedFailure>> ReadFailures() {
  std::map<std::string, std::vector<PlannedFailure>> failures;
  const std::string value = TextVariable("PTXEMU_FAIL", "");
  for (const absl::string_view item :
       absl::StrSplit(value, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> name_and_rest =
        absl::StrSplit(item, absl::MaxSplits(':', 1));
    std::pair<absl::string_view, absl::string_view> numbers =
        absl::StrSplit(name_and_rest.second, absl::MaxSplits('=', 1));
    PlannedFailure failure;
    failure.lasts = absl::ConsumeSuffix(&numbers.second, "!");
    if (!absl::SimpleAtoi(numbers.first, &failure.call) ||
        !absl::SimpleAtoi(numbers.second, &failure.error)) {
      RefuseVariable("PTXEMU_FAIL", value);
    }
    failures[name_and_rest.first].push_back(failure);
  }
  return failures;
}

Settings ReadSettings() {
  return {
      .seed = NumberVariable("PTXEMU_SEED", 1),
      .schedule = ReadSchedule(),
      .grain = ReadGrain(),
      .resident_blocks = static_cast<int>(NumberVariable("PTXEMU_RESIDENT", 3)),
      .has_driver = NumberVariable("PTXEMU_DRIVER", 1) != 0,
      .visible_devices = ReadVisibleDevices(),
      .memory_bytes = NumberVariable("PTXEMU_MEMORY", uint64_t{8} << 30),
      .taken_bytes = NumberVariable("PTXEMU_TAKEN", 0),
      .has_peer_access = NumberVariable("PTXEMU_PEER", 1) != 0,
      .max_instructions =
          NumberVariable("PTXEMU_MAX_INSTRUCTIONS", uint64_t{20'000'000'000}),
      .background = ReadBackground(),
      .verbose = std::getenv("PTXEMU_VERBOSE") != nullptr,
      .statistics = std::getenv("PTXEMU_VERBOSE") != nullptr ||
                    std::getenv("PTXEMU_STATISTICS") != nullptr,
      .failures = ReadFailures()};
}

}  // namespace

const Settings& GetSettings() {
  static const auto* settings = new Settings(ReadSettings());
  return *settings;
}

}  // namespace millrace::ptxemu
