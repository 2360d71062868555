// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace millrace {

// The value as JSON on one line, without a line feed at the end. Texts may hold
// any bytes, such as what other hosts said: those that are not UTF-8 become
// U+FFFD. Any thread.
std::string JsonLine(const nlohmann::ordered_json& value);

}  // namespace millrace
