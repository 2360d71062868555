// SPDX-License-Identifier: Apache-2.0
#include "common/cli/memory_flags.h"

#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "common/cli/numbers.h"
#include "common/cli/words.h"

namespace millrace {

void MemoryFlags::AddTo(CLI::App& group, const std::string& prefix,
                        const std::string& default_gpus) {
  group
      .add_option("--graph-memory", graph_memory_,
                  StrCat(prefix,
                         "where to keep the graph; in pinned or cuda memory a "
                         "GPU samples it"))
      ->check(OneOf(MemoryTiers()));
  group
      .add_option("--feature-memory", feature_memory_,
                  StrCat(prefix, "where to keep features"))
      ->check(OneOf(MemoryTiers()));
  group
      .add_option("--gpus", gpus_,
                  StrCat(prefix,
                         "GPUs to use for --graph-memory, --feature-memory and "
                         "--cache-ratio, by their numbers"))
      ->type_name("N,...")
      ->delimiter(',')
      ->default_str(default_gpus)
      ->check(WholeNumber(0, 1023));
  group
      .add_option("--device-fallback", device_fallback_,
                  StrCat(prefix,
                         "whether the CPU samples what a GPU has no kernels "
                         "for"))
      ->check(OneOf(DeviceFallbacks()));
}

MemoryOptions MemoryFlags::Options() const {
  MemoryOptions options;
  options.graph = MemoryTiers().at(graph_memory_);
  options.features = MemoryTiers().at(feature_memory_);
  if (names_gpus()) options.gpus = gpus_;
  options.fallback = DeviceFallbacks().at(device_fallback_);
  return options;
}

std::vector<std::string> MemoryFlags::Words() const {
  const MemoryFlags defaults;
  std::vector<std::string> words;
  const auto add = [&words](const char* option, const std::string& value,
                            const std::string& default_value) {
    if (value != default_value) words.insert(words.end(), {option, value});
  };
  add("--graph-memory", graph_memory_, defaults.graph_memory_);
  add("--feature-memory", feature_memory_, defaults.feature_memory_);
  add("--gpus", absl::StrJoin(gpus_, ","), "");
  add("--device-fallback", device_fallback_, defaults.device_fallback_);
  return words;
}

}  // namespace millrace
