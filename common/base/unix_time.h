// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace millrace {

// Seconds since 1970, with fractions, as Prometheus and JSON have times of day.
inline double UnixSeconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

}  // namespace millrace
