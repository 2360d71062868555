// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "client/train/main/run_view.h"

namespace millrace {

// The JSON object that the status page of a trainer shows; see
// docs/training.md. Any thread.
std::string PrintTrainerStatus(const RunView& view);

}  // namespace millrace
