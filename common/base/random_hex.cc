// SPDX-License-Identifier: Apache-2.0
#include "common/base/random_hex.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace millrace {

std::string RandomHex(size_t digits) {
  std::random_device random;
  std::string text;
  while (text.size() < digits) {
    absl::StrAppend(&text, absl::Hex(random(), absl::kZeroPad8));
  }
  text.resize(digits);
  return text;
}

}  // namespace millrace
