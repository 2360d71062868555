// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace::fuzz {

// store.json with the checksum and the fingerprints that its content should
// have, where it has any: no fuzzer guesses them.
std::string WithChecksum(std::string_view json);

}  // namespace millrace::fuzz
