// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/Exception.h>

#include <cstddef>
#include <string>
#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace millrace {

// Logs LibTorch's warnings, each text once: some come with every step.
// Threads: any.
class WarningLines final : public c10::WarningHandler {
 public:
  // After so many different texts, it forgets them and logs each once more.
  static constexpr size_t kTexts = 256;

  void process(const c10::Warning& warning) override;

 private:
  Mutex mutex_;
  std::unordered_set<std::string> logged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
