// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace::fuzz {

// Corrects the checksum and the fingerprints of a store.json, if it has any,
// because no fuzzer can guess them.
std::string WithChecksum(std::string_view json);

}  // namespace millrace::fuzz
