// SPDX-License-Identifier: Apache-2.0
#include "common/graph/manifest_checksum.h"

#include <xxhash.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

constexpr std::string_view kChecksumKey = "\"checksum\"";

// Returns the position of the checksum's digits; npos if there are none.
size_t FindChecksum(std::string_view text) {
  for (size_t at = text.rfind(kChecksumKey); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos
                    : text.rfind(kChecksumKey, at - 1)) {
    size_t next = text.find_first_not_of(" \t\r\n", at + kChecksumKey.size());
    if (next == std::string_view::npos || text[next] != ':') continue;
    next = text.find_first_not_of(" \t\r\n", next + 1);
    if (next == std::string_view::npos || text[next] != '"') continue;
    const size_t digits = next + 1;
    if (digits + kNoChecksum.size() < text.size() &&
        text[digits + kNoChecksum.size()] == '"') {
      return digits;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::string Hex16(uint64_t number) {
  return absl::StrCat(absl::Hex(number, absl::kZeroPad16));
}

std::string AddChecksum(std::string json) {
  const std::string checksum = Hex16(XXH3_64bits(json.data(), json.size()));
  return json.replace(FindChecksum(json), checksum.size(), checksum);
}

absl::Status VerifyChecksum(std::string_view json) {
  const size_t at = FindChecksum(json);
  if (at == std::string_view::npos) {
    return absl::DataLossError("the checksum is missing");
  }
  const std::string given(json.substr(at, kNoChecksum.size()));
  std::string zeroed(json);
  zeroed.replace(at, kNoChecksum.size(), kNoChecksum);
  const std::string expected = Hex16(XXH3_64bits(zeroed.data(), zeroed.size()));
  if (given == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the checksum is ",
                                          absl::CHexEscape(given),
                                          ", but the content has ", expected));
}

}  // namespace millrace
