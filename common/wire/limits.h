// SPDX-License-Identifier: Apache-2.0
// Limits of requests that both ends know; docs/protocol.md lists all.
#pragma once

#include <cstdint>

namespace millrace {

inline constexpr int64_t kMaxSeeds = 1 << 20;  // of one batch

}  // namespace millrace
