// SPDX-License-Identifier: Apache-2.0
// The checksum that store.json has of itself: under the key "checksum", XXH3 of
// the text that has kNoChecksum there instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace millrace {

inline constexpr std::string_view kNoChecksum = "0000000000000000";

// A number as 16 hex digits, like all checksums of store.json.
std::string Hex16(uint64_t number);

// Puts the checksum in the place of kNoChecksum, which `json` must have.
std::string AddChecksum(std::string json);

// DATA_LOSS: there is no checksum, or another one than the text should have.
absl::Status VerifyChecksum(std::string_view json);

}  // namespace millrace
