// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "common/sample/memory_options.h"

namespace millrace {

// The flags --graph-memory, --feature-memory, --gpus and --device-fallback.
class MemoryFlags {
 public:
  // Help texts start with `prefix`, such as "--store: ". `default_gpus` says
  // which GPUs are used without --gpus.
  void AddTo(CLI::App& group, const std::string& prefix = "",
             const std::string& default_gpus = "0");
  MemoryOptions Options() const;
  // Those that differ from the defaults, as the words of a command line.
  std::vector<std::string> Words() const;
  // Whether --gpus was given.
  bool names_gpus() const { return !gpus_.empty(); }

 private:
  std::string graph_memory_ = "mmap";
  std::string feature_memory_ = "mmap";
  std::string device_fallback_ = "allow";
  std::vector<int> gpus_;
};

}  // namespace millrace
