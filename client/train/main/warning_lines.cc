// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/warning_lines.h"

#include "common/base/log.h"

namespace millrace {

void WarningLines::process(const c10::Warning& warning) {
  {
    MutexLock lock(&mutex_);
    if (logged_.contains(warning.msg())) return;
    if (logged_.size() >= kTexts) logged_.clear();
    logged_.insert(warning.msg());
  }
  LogWarning(warning.msg());
}

}  // namespace millrace
