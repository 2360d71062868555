// SPDX-License-Identifier: Apache-2.0
// The environment variables that control the runtime; README.md describes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace millrace::ptxemu {

inline constexpr int kMaxDevices = 16;

// When queued work runs: as early as possible, only when somebody waits for it,
// or at random.
enum class Schedule { kRandom, kEager, kLazy };

// When a thread runs queued work while the program does not call CUDA: never,
// from the first work on that lasts, or always.
enum class Background { kNever, kForLasting, kAlways };

// The `call`th call of a function, counted from 1, returns `error`.
struct PlannedFailure {
  int call;
  int error;
  bool lasts = false;  // later calls for the device fail, too
};

struct Settings {
  uint64_t seed;
  Schedule schedule;
  std::optional<int> grain;  // drawn for each block if it is not set
  int resident_blocks;
  bool has_driver;
  std::vector<int> visible_devices;  // their numbers in the machine
  uint64_t memory_bytes;             // of each device
  uint64_t taken_bytes;              // of these, by other processes
  bool has_peer_access;
  uint64_t max_instructions;  // of a launch
  Background background;
  bool verbose;
  bool statistics;
  // By the function's name; "*" counts the calls of all functions.
  std::map<std::string, std::vector<PlannedFailure>> failures;
};

// Reads the environment at the first call, as CUDA does.
const Settings& GetSettings();

}  // namespace millrace::ptxemu
