// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/spdlog.h>

namespace millrace {

void LogInfo(const std::string& line) { spdlog::info("{}", line); }

void LogWarning(const std::string& line) { spdlog::warn("{}", line); }

}  // namespace millrace
