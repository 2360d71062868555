// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/spdlog.h>

namespace millrace {

void LogInfo(const std::string& line) { spdlog::info("{}", line); }

}  // namespace millrace
