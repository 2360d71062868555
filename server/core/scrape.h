// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/core.h"
#include "server/core/scraped.h"

namespace millrace {

// Reads everything that `core` knows: all but connections, `scrub` and the
// certificate. Any thread. Takes well below a millisecond.
Scraped Scrape(const ServerCore& core);

}  // namespace millrace
