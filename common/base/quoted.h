// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

// Prepares text from a file, which may hold any bytes, for a message: cuts it
// after `max_bytes`, escapes it as in C, and puts it in double quotes.
std::string Quoted(std::string_view text, size_t max_bytes = 40);

}  // namespace millrace
