// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/base/field_error.h"
#include "common/base/strings.h"

namespace millrace::cuda {

// The error where the CPU may not stand in for a device. `what` is what there
// are no kernels for, such as "walks".
inline absl::Status NoKernels(const std::string& what) {
  return FieldStatus(absl::StatusCode::kFailedPrecondition,
                     {.field = "device_fallback",
                      .value = "forbid",
                      .limit = StrCat("there are no kernels for ", what)});
}

}  // namespace millrace::cuda
