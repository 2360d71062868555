// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_line.h"

#include <nlohmann/json.hpp>

namespace millrace {

std::string JsonLine(const nlohmann::ordered_json& value) {
  return value.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true,
                    nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace millrace
