// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace {

// Memory of the host, or of the container if that has less.
uint64_t HostMemoryBytes();

// What of it can be had now without swapping: free, or pages of files.
uint64_t AvailableMemoryBytes();

}  // namespace millrace
