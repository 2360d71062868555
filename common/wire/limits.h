// SPDX-License-Identifier: Apache-2.0
// Limits on requests that both ends know; docs/protocol.md lists all limits.
#pragma once

#include <cstdint>

namespace millrace {

inline constexpr int64_t kMaxSeeds = 1 << 20;  // of one batch

}  // namespace millrace
