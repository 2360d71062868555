// SPDX-License-Identifier: Apache-2.0
// What users of millrace can do about errors of its commands.
#pragma once

#include <span>

#include "client/flags/option_errors.h"

namespace millrace {

std::span<const ReasonAdvice> CommandAdvice();

}  // namespace millrace
