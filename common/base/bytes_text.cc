// SPDX-License-Identifier: Apache-2.0
#include "common/base/bytes_text.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_format.h"

namespace millrace {

std::string BytesText(double bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1023.5) return absl::StrFormat("%.0f bytes", bytes);
  double value = bytes / 1024;
  size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

}  // namespace millrace
