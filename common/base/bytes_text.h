// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace {

// "512 bytes", "24.1 GiB": a number of bytes, 0 or more, in powers of 1024, as
// options such as --memory take it.
std::string BytesText(double bytes);

}  // namespace millrace
