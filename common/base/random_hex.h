// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace millrace {

// So many hexadecimal digits, such as "1f0c9a2b", that nobody can guess: they
// come from the operating system. Any thread may call it.
std::string RandomHex(size_t digits);

}  // namespace millrace
