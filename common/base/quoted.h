// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// Text from a file, made fit for a message: quoted and escaped as in C, since
// it may hold any bytes, and cut after `max_bytes` of them.
std::string Quoted(std::string_view text, size_t max_bytes = 40);

}  // namespace millrace
