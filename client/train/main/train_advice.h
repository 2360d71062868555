// SPDX-License-Identifier: Apache-2.0
// What users of millrace-train can do about errors of the trainer.
#pragma once

#include <span>

#include "client/flags/option_errors.h"

namespace millrace {

std::span<const ReasonAdvice> TrainAdvice();

}  // namespace millrace
