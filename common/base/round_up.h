// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/host_device.h"

namespace millrace {

// The smallest multiple of `unit` that is not less than `value`. The unit must
// not be 0, and the sum of both must fit.
MILLRACE_HOST_DEVICE constexpr uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace millrace
