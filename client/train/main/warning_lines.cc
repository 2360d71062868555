// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/warning_lines.h"

#include "common/base/log.h"

namespace millrace {

void WarningLines::process(const c10::Warning& warning) {
  {
    MutexLock lock(&mutex_);
    if (logged_.size() >= kTexts) logged_.clear();
    if (!logged_.insert(warning.msg()).second) return;
  }
  LogWarning(warning.msg());
}

}  // namespace millrace
