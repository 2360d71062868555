// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// Text of a file for a message: in quotes, as C would write it, for it may be
// any bytes, and cut after `max_bytes` of them.
std::string Quoted(std::string_view text, size_t max_bytes = 40);

}  // namespace millrace
