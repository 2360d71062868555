// SPDX-License-Identifier: Apache-2.0
// Keys of random numbers (docs/determinism.md, section 2), for the host and for
// kernels.
#pragma once

#include <cstdint>

#include "common/base/host_device.h"
#include "common/random/philox.h"
#include "common/sample/draw_rule.h"

namespace millrace {

// What the key of one domain of random numbers is made of; see section 2,
// "Key".
struct DrawDomain {
  uint64_t job_seed = 1;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  Purpose purpose = Purpose::kNeighbor;
  int hop = 0;
  int relation = 0;

  MILLRACE_HOST_DEVICE PhiloxKey Key(uint32_t retry = 0) const {
    const PhiloxWords words =
        Philox({{static_cast<uint32_t>(job_seed),
                 static_cast<uint32_t>(job_seed >> 32)}},
               {{epoch, batch, static_cast<uint32_t>(purpose) + 256 * retry,
                 static_cast<uint32_t>(hop) * 65536 +
                     static_cast<uint32_t>(relation)}});
    return {{words[0], words[1]}};
  }
};

}  // namespace millrace
