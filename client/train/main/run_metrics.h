// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/train/main/run_view.h"

namespace millrace {

// The metrics of a trainer in Prometheus' text format, which docs/training.md
// lists. Any thread; takes well below a millisecond.
std::string PrintTrainerMetrics(const RunView& view);

}  // namespace millrace
