// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace {

// Makes text that may hold any bytes, such as a path or a name from a damaged
// file, fit to be shown in one line: control characters, line feeds included,
// invisible characters and bytes that are not UTF-8 become \xNN.
std::string Printable(std::string_view text);

}  // namespace millrace
